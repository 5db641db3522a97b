"""The question: who deserves credit?"""

from confrere.answers.answer import Answer
from confrere.data.silos import Silos
from confrere.insight.credit import Ledger, rewards
from confrere.insight.credit.tables import (
    by_chance,
    credit_in_words,
    payment_cell,
    rank_cell,
    weight_title,
    with_interval,
)
from confrere.report import figures, html
from confrere.report.contents import Credit, Credited, Estimate
from confrere.report.figures import Row
from confrere.selection.words import size_of
from confrere.study.result import StudyResult

BUDGET = 100.0  # so that amounts are per cent
SHOWN = ("equal", "weight", "ndoye", "influence", "shapley", "sure")


def credited(silos: Silos, user: int, answer: Answer, result: StudyResult) -> Credit:
    """The ledger of the answer, for linear models; others would have to train with every coalition."""
    if answer.model.model.name not in ("linear", "logistic"):
        return Credit((), ("A network would have to be trained with every coalition of silos: not done here.",), "")
    if len(silos) < 2 or silos.sizes("train")[user] < 2:
        return Credit((), ("There is nobody to give credit to, or there are too few rows to judge by.",), "")
    others = result.config.get("others", "train")
    try:
        ledger = rewards(silos, user, answer, answer.model.model, budget=BUDGET, others=others)
    except ValueError as problem:
        return Credit((), (f"Credit could not be given: {problem}.",), "")
    return of_ledger(ledger)


def of_ledger(ledger: Ledger) -> Credit:
    """The ledger as the report holds it."""
    lines = tuple(line(ledger, i, name) for i, name in enumerate(ledger.names) if i != ledger.user)
    found = ledger.shapley
    small = (
        "Influence: how much more the user would lose a row without the silo. Shapley: what it adds, averaged over "
        f"all orders of joining. Both on {found.judged}; 95 % intervals: {found.resampled}. Ndoye: rank of how well "
        "the silo's own model carries over, and its transfer loss. Rows, rounds, weights and bytes are counted, and "
        "have no interval; nor have shares by them. Shares by influence and Shapley leave out what chance may explain: "
        "of a value of one standard error nothing is paid, of two three quarters. sure: by Shapley's value, to those "
        "whose whole interval is above 0, and so without an interval of its own."
    )
    return Credit(lines, (credit_title(ledger), *credit_in_words(ledger)), small, weight_title(ledger))


def credit_title(ledger: Ledger) -> str:
    """The answer in a sentence."""
    paid = {name: ledger.paid(name) for name in ledger.others}
    best = max(paid, key=lambda name: paid[name])
    if paid[best] <= 0:
        return f"Nobody, as far as these rows tell{by_chance(ledger, 'shapley') or ': nobody seemed to help'}."
    sure = ledger.shapley.value.low[ledger.names.index(best)] > 0
    return f"{best} most of all{'' if sure else ', though chance may explain it'}."


def line(ledger: Ledger, i: int, name: str) -> Credited:
    """One silo's line."""
    run, worth = ledger.run, ledger.shapley.value
    low, high = (float(v[i]) for v in (worth.low, worth.high))
    known = low == low and high == high
    return Credited(
        name, int(ledger.rows[i]), f"{int(run.joined[i])} of {run.rounds}", float(run.weight[i]), int(run.bytes_up[i]),
        rank_cell(ledger, i), with_interval(ledger.shapley.influence, i), with_interval(worth, i),
        Estimate(float(worth.values[i]), low if known else None, high if known else None),
        {scheme: payment_cell(ledger, scheme, i) for scheme in SHOWN},
    )  # fmt: skip


def credit(name: str, found: Credit) -> str:
    """The answer, drawn."""
    if not found.lines:
        return html.listed(found.words)
    rows = [Row(one.silo, {"shapley": one.value}) for one in found.lines if one.value.value == one.value.value]
    told = "; ".join(f"{one.silo} {one.shapley}" for one in found.lines)
    picture = figures.intervals(
        f"What each silo adds for {name}", rows, {"shapley": ("", 0, "one")},
        f"Shapley values with 95 % intervals: right of the line a silo helps. {told}.", "fall of the loss a row", 1.0,
    )  # fmt: skip
    did = [
        [one.silo, str(one.rows), one.rounds, f"{one.weight:.2f}" if one.weight == one.weight else "not known",
         size_of(one.bytes_up)]
        for one in found.lines
    ]  # fmt: skip
    worth = [[one.silo, one.ndoye, one.influence, one.shapley] for one in found.lines]
    shares = [[one.silo, *(one.paid[scheme] for scheme in SHOWN)] for one in found.lines]
    tables = html.table(f"What each silo did for {name}", ["", "rows", "rounds", found.weight, "sent"], did)
    judged = ["", "ndoye rank (transfer loss)", "influence", "shapley"]
    tables += html.table(f"What each silo was worth to {name}", judged, worth)
    tables += html.table(f"Shares of a reward by {name}, by scheme, in per cent", ["", *SHOWN], shares)
    return html.listed(found.words) + html.plots(picture) + tables + html.paragraphs([found.small], "small")
