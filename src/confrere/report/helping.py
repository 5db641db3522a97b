"""Question 1: did learning together help? Means over splits, gains on the rivals with intervals, and a verdict."""

import math
from collections.abc import Sequence

from confrere.report.contents import Estimate, Gain, Help, Score, Verdict, Worth
from confrere.report.metrics import (
    ALONE,
    DESCENT,
    EVERYBODY,
    MAIN,
    algorithm_title,
    amount,
    better_when_larger,
    between,
    in_a_sentence,
    metric_of,
    won_or_lost,
)
from confrere.study.cell import When
from confrere.study.result import ALL, StudyResult

SHOWN = ("accuracy", "log_loss", "brier", "auroc", "rmse")
DECISIVE = ("accuracy", "log_loss", "rmse")  # on which the verdict rests
CALIBRATION = "Calibration and sharpness (Brier score)"
TOLD = (*DECISIVE, "brier")  # in words and pictures
SPLITS_FOR_VERDICT = 5  # fewer say too little
MOST = {"accuracy": 1.0, "balanced_accuracy": 1.0, "auroc": 1.0, "brier": 2.0}  # by which two models can differ
NO_WIDTH = 1e-9
LONELY = (ALONE, DESCENT)  # what stands for training alone, the better first


def main_algorithm(result: StudyResult) -> str:
    """The algorithm that the report is about: auto, or the first that is no baseline, or FedAvg."""
    known = result.algorithms
    others = [name for name in known if name not in (*LONELY, EVERYBODY)]
    return next((name for name in (*MAIN, *others, EVERYBODY) if name in known), known[0])


def alone_in(result: StudyResult, main: str) -> str | None:
    """What stands for training alone; None if nothing does, or if nothing else was studied."""
    return None if main in LONELY else next((name for name in LONELY if name in result.algorithms), None)


def rivals_of(result: StudyResult, main: str) -> tuple[str, ...]:
    """Training alone and one model for all, as far as they were studied; else everything else."""
    rivals = (alone_in(result, main), EVERYBODY if EVERYBODY in result.algorithms and main != EVERYBODY else None)
    found = tuple(name for name in rivals if name is not None)
    return found or tuple(name for name in result.algorithms if name != main)


def helped(result: StudyResult, user: str, main: str, at: When) -> Help:
    """What a study says about one user, or about all."""
    metrics = [name for name in SHOWN if name in result.config["metrics"]] or list(result.config["metrics"])
    scores = tuple(
        Score(row["algorithm"], metric, row["mean"], row["std"], row["n"])
        for metric in metrics
        for row in result.table(metric, by="all" if user == ALL else "user", at=at).to_dicts()
        if row["user"] == user
    )
    gains = tuple(gain_on(result, user, main, rival, m, at) for m in metrics for rival in rivals_of(result, main))
    alone = [g for g in gains if g.rival == alone_in(result, main)]
    worth = was_it_worth_it([g.verdict for g in alone if decisive(g)])
    answer = answer_in_words(user, worth, alone) if alone else nothing_to_hold_it_against(main)
    answer += against_the_others(main, [g for g in gains if g not in alone]) if alone else ""
    told = (gain_in_words(g, main, scores) for g in gains if g.metric in TOLD)
    return Help(main, scores, gains, worth, (answer, *told, *not_studied(result, main)))


def nothing_to_hold_it_against(main: str) -> str:
    """Why the question cannot be answered.

    >>> nothing_to_hold_it_against("ridge_local")
    'Not known: only training alone was studied, and nothing that learns together.'
    """
    if main in LONELY:
        return "Not known: only training alone was studied, and nothing that learns together."
    return (
        f"Not known: training alone was not studied, so that there is nothing to hold {algorithm_title(main)} against."
    )


def not_studied(result: StudyResult, main: str) -> list[str]:
    """That there is no model for all to compare with."""
    if EVERYBODY in result.algorithms or main in LONELY:
        return []
    return [f"Nothing is said of {algorithm_title(EVERYBODY)}: it was not among the algorithms of this study."]


def decisive(gain: Gain) -> bool:
    """Whether the verdict rests on a gain."""
    return gain.metric in DECISIVE


def gain_on(result: StudyResult, user: str, main: str, rival: str, metric: str, at: When) -> Gain:
    """The paired difference with a rival, turned so that more is better."""
    [row] = [r for r in result.paired(main, rival, metric, at).to_dicts() if r["user"] == user]
    sign = 1.0 if better_when_larger(metric) else -1.0
    ends = [None if row[k] is None else sign * row[k] for k in ("low", "high")]
    low, high = ends if sign > 0 else ends[::-1]
    splits = row["wins"] + row["ties"] + row["losses"]
    found = possible(Estimate(sign * row["difference"], low, high), metric)
    return Gain(rival, metric, found, row["wins"], row["ties"], row["losses"], verdict_on(found, splits))


def possible(gain: Estimate, metric: str) -> Estimate:
    """A gain with the part of its interval that can be, if it has one.

    >>> possible(Estimate(-0.1, -2.9, 2.8), "accuracy"), possible(Estimate(-0.1), "accuracy")
    (Estimate(value=-0.1, low=-1.0, high=1.0), Estimate(value=-0.1, low=None, high=None))
    """
    if gain.low is None or gain.high is None:
        return gain
    most = MOST.get(metric, math.inf)
    return Estimate(gain.value, max(gain.low, -most), min(gain.high, most))


def verdict_on(gain: Estimate, splits: int) -> Verdict:
    """Better or worse if the interval leaves zero out; of few splits, or where all are alike, nothing is said.

    >>> verdict_on(Estimate(0.1, 0.05, 0.15), 10), verdict_on(Estimate(0.1, -0.05, 0.25), 10)
    ('better', 'unclear')
    >>> verdict_on(Estimate(0.1, 0.05, 0.15), 4), verdict_on(Estimate(0.1), 1), verdict_on(Estimate(0.1, 0.1, 0.1), 9)
    ('unknown', 'unknown', 'unclear')
    """
    if gain.low is None or gain.high is None or splits < SPLITS_FOR_VERDICT:
        return "unknown"
    if gain.high - gain.low < NO_WIDTH:
        return "unclear"
    return "better" if gain.low > 0 else "worse" if gain.high < 0 else "unclear"


def was_it_worth_it(verdicts: Sequence[Verdict]) -> Worth:
    """One answer from the verdicts on several metrics.

    >>> was_it_worth_it(["better", "unclear"]), was_it_worth_it(["better", "worse"]), was_it_worth_it(["unclear"])
    ('yes', 'mixed', 'unclear')
    """
    better, worse = "better" in verdicts, "worse" in verdicts
    if better and worse:
        return "mixed"
    if better or worse:
        return "yes" if better else "no"
    return "unknown" if not verdicts or "unknown" in verdicts else "unclear"


def answer_in_words(user: str, worth: Worth, gains: Sequence[Gain]) -> str:
    """The answer in one sentence.

    >>> answer_in_words("a", "no", [])
    'No: for a the model trained alone is better, by more than chance explains.'
    """
    who = "all of them on average" if user == ALL else user
    if worth == "unclear":
        means = [g.gain.value for g in gains if g.rival == gains[0].rival and decisive(g)]
        leaning = "in favour of it" if min(means) > 0 else "against it" if max(means) < 0 else "both ways"
        if not any(means):
            return f"Not certain: for {who} there is no difference from training alone."
        return (
            f"Not certain: for {who} the differences from training alone lean {leaning}, but none is clear of what "
            "chance may explain."
        )
    return {
        "yes": f"Yes: learning together helped {who}, by more than chance explains.",
        "no": f"No: for {who} the model trained alone is better, by more than chance explains.",
        "mixed": f"It depends on what counts: for {who} one measure is clearly better, another clearly worse.",
        "unknown": f"Not known: for {who} it was measured on {too_few(gains)}.",
    }[worth]


def too_few(gains: Sequence[Gain]) -> str:
    """Why there is no verdict."""
    splits = max((splits_of(g) for g in gains), default=1)
    if splits == 1:
        return "a single split, so that there is no interval"
    return f"{splits} splits only, where a verdict needs {SPLITS_FOR_VERDICT} or more"


def splits_of(gain: Gain) -> int:
    """On how many splits a gain rests."""
    return gain.wins + gain.ties + gain.losses


def against_the_others(main: str, gains: Sequence[Gain]) -> str:
    """What is clear about other rivals than training alone, as a further sentence.

    >>> clear = Gain("fedavg", "log_loss", Estimate(0.1, 0.05, 0.15), 10, 0, 0, "better")
    >>> against_the_others("auto", [clear])
    ' Than one model for all (FedAvg) it is clearly better by log-loss.'
    """
    said = ""
    for rival in dict.fromkeys(g.rival for g in gains):
        clear = [(g.verdict, g.metric) for g in gains if g.rival == rival and decisive(g)]
        parts = [
            f"clearly {way} by {' and '.join(in_a_sentence(m) for v, m in clear if v == way)}"
            for way in ("better", "worse") if any(v == way for v, _ in clear)
        ]  # fmt: skip
        said += f" Than {algorithm_title(rival)} it is {' and '.join(parts)}." if parts else ""
    return said


def gain_in_words(gain: Gain, main: str, scores: Sequence[Score]) -> str:
    """A gain with both values, its interval, and how often it was one."""
    mean = {s.algorithm: s.mean for s in scores if s.metric == gain.metric}
    title = CALIBRATION if gain.metric == "brier" else metric_of(gain.metric).title
    splits = splits_of(gain)
    counted = f"better in {gain.wins} of {splits} random splits" if splits > 1 else "measured on one split"
    return (
        f"{title} is {amount(gain.metric, mean[main])} with {algorithm_title(main)} and "
        f"{amount(gain.metric, mean[gain.rival])} with {algorithm_title(gain.rival)}: "
        f"{won_or_lost(gain.metric, gain.gain.value)} ({between(gain.metric, gain.gain)}), {counted}."
    )
