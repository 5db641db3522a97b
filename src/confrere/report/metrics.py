"""How metrics and algorithms are called on the page, and how their numbers are written."""

import math
from typing import NamedTuple

from confrere.report.contents import Estimate
from confrere.study.tuning import larger_is_better

IN_LABEL_UNITS = ("rmse", "mae")
MINUS = "\N{MINUS SIGN}"
ALONE, DESCENT, EVERYBODY = "ridge_local", "local", "fedavg"  # training alone: the optimum, or as far as steps lead
MAIN = ("auto", "evidence")  # what the report is about, if it is there
ALGORITHMS = {
    "auto": "learning together (auto)",
    "evidence": "learning together (auto)",
    ALONE: "training alone",
    EVERYBODY: "one model for all (FedAvg)",
    "weight_erosion": "Weight Erosion",
    DESCENT: "training alone (gradient descent)",
    "fedsgd": "one model for all (FedSGD)",
    "fine_tuned": "FedAvg, fine-tuned",
    "ditto": "Ditto",
    "scaffold": "one model for all (SCAFFOLD)",
    "waffle": "WAFFLE",
    "apfl": "APFL",
    "fedper": "FedPer",
    "fedrep": "FedRep",
    "fedbn": "FedBN",
    "featurised": "one model for all, told of the silo",
    "model_interpolation": "between one model for all and one's own",
    "data_interpolation": "between everybody's rows and one's own",
    "fedprox": "one model for all (FedProx)",
    "fedopt": "one model for all (FedOpt)",
    "per_fedavg": "Per-FedAvg",
    "pfedme": "pFedMe",
    "multi_task": "multi-task learning",
    "ifca": "IFCA",
    "clustered": "clustered federated learning",
    "fedamp": "FedAMP",
    "fedfomo": "FedFomo",
}


class Metric(NamedTuple):
    """A metric in words: its name, its unit, what it means, and by how much numbers are multiplied."""

    title: str
    unit: str
    meaning: str
    factor: float
    digits: int


METRICS = {
    "accuracy": Metric("Accuracy", "%", "the share that is classified correctly; higher is better", 100, 1),
    "balanced_accuracy": Metric(
        "Balanced accuracy", "%", "the mean over the classes of the share that is classified correctly", 100, 1
    ),
    "log_loss": Metric(
        "Log-loss", "", "how far the predicted probabilities are from what happened; lower is better", 1, 3
    ),
    "auroc": Metric(
        "AUROC", "", "how often somebody with the outcome is ranked above somebody without; higher is better", 1, 3
    ),
    "rmse": Metric("RMSE", "", "the typical size of an error, in the units of the label; lower is better", 1, 3),
    "brier": Metric(
        "Brier score",
        "",
        "calibration and sharpness: the mean squared distance of probabilities from what happened; lower is better",
        1,
        3,
    ),
    "mae": Metric("Mean absolute error", "", "in the units of the label; lower is better", 1, 3),
}


def metric_of(name: str) -> Metric:
    """A metric in words; one that has none is called as it is."""
    return METRICS.get(name, Metric(name.replace("_", " "), "", "", 1, 3))


def better_when_larger(name: str) -> bool:
    """Which way is better."""
    return name != "mae" and larger_is_better(name)


def algorithm_title(name: str) -> str:
    """An algorithm as the page calls it.

    >>> algorithm_title("ridge_local"), algorithm_title("my_method")
    ('training alone', 'my method')
    """
    return ALGORITHMS.get(name, name.replace("_", " "))


def decimals(name: str, *values: float | None) -> int:
    """How many digits after the point: those of the metric; of errors in the label's units, fewer if they are large.

    >>> decimals("log_loss", 0.5), decimals("rmse", 0.5), decimals("rmse", 12345.678, -7.0)
    (3, 3, 0)
    """
    metric = metric_of(name)
    largest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)
    if name not in IN_LABEL_UNITS or largest < 1:
        return metric.digits
    return max(0, metric.digits - 1 - int(math.log10(largest)))


def number(value: float | None, digits: int = 3) -> str:
    """A number with a proper minus sign; a dash if there is none.

    >>> number(-0.1234), number(None), number(float("nan")), number(-0.0001)
    ('−0.123', '–', '–', '0.000')
    """
    if value is None or value != value:
        return "\N{EN DASH}"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def signed(value: float | None, digits: int = 3) -> str:
    """The same with a plus sign.

    >>> signed(0.1), signed(-0.1), signed(0.0)
    ('+0.100', '−0.100', '0.000')
    """
    text = number(value, digits)
    return f"+{text}" if value is not None and value == value and float(f"{value:.{digits}f}") > 0 else text


def amount(name: str, value: float | None) -> str:
    """A value of a metric with its unit.

    >>> amount("accuracy", 0.8), amount("log_loss", 0.45)
    ('80.0 %', '0.450')
    """
    metric = metric_of(name)
    text = number(None if value is None else metric.factor * value, decimals(name, value))
    return f"{text} {metric.unit}".strip()


def gained(name: str, value: float | None) -> str:
    """A gain of a metric with its unit: points, if the metric is a percentage.

    >>> gained("accuracy", 0.017), gained("log_loss", -0.01)
    ('+1.7 points', '−0.010')
    """
    metric = metric_of(name)
    text = signed(None if value is None else metric.factor * value, decimals(name, value))
    return f"{text} points" if metric.unit == "%" else text


def won_or_lost(name: str, value: float) -> str:
    """A gain in words, whichever way it goes.

    >>> won_or_lost("accuracy", -0.017), won_or_lost("log_loss", 0.01), won_or_lost("accuracy", 0.0)
    ('a loss of 1.7 points', 'a gain of 0.010', 'no difference')
    """
    text = gained(name, abs(value)).lstrip("+")
    metric = metric_of(name)
    if value == value and float(f"{metric.factor * value:.{decimals(name, value)}f}") == 0:
        return "no difference"
    return f"a {'gain' if value > 0 else 'loss'} of {text}"


def in_a_sentence(name: str) -> str:
    """A metric's name within a sentence.

    >>> in_a_sentence("log_loss"), in_a_sentence("rmse")
    ('log-loss', 'RMSE')
    """
    title = metric_of(name).title
    return title if title[:2].isupper() else title[0].lower() + title[1:]


def between(name: str, value: Estimate) -> str:
    """The interval of a gain; words if there is none.

    >>> between("accuracy", Estimate(0.01, -0.02, 0.04))
    '95 % interval of the gain −2.0 to +4.0'
    """
    if value.low is None or value.high is None:
        return "too few splits for an interval"
    if value.high - value.low < 1e-9:
        return "the same in every split"
    digits = decimals(name, value.low, value.high)
    low, high = (signed(metric_of(name).factor * v, digits) for v in (value.low, value.high))
    return f"95 % interval of the gain {low} to {high}"


def within(value: Estimate, percent: bool, more: int = 0) -> str:
    """A value and its interval, as a percentage or as a number; with so many digits more than usual.

    >>> within(Estimate(0.5, 0.4, 0.6), True), within(Estimate(2.0), False), within(Estimate(0.5, 0.4, 0.6), True, 1)
    ('50 % (40 to 60)', '2.00', '50.0 % (40.0 to 60.0)')
    """
    show = (lambda v: number(100 * v, more)) if percent else (lambda v: number(v, 2 + more))
    text = f"{show(value.value)} %" if percent else show(value.value)
    return text if value.low is None or value.high is None else f"{text} ({show(value.low)} to {show(value.high)})"
