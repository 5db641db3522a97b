"""Contents: everything that the report says, as plain values. `gather` makes them, `page` draws them.

Gains are always counted so that above 0 the model of the report is the better one, whatever the metric.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

Verdict = Literal["better", "worse", "unclear", "unknown"]  # unknown: a single split, so no interval
Worth = Literal["yes", "no", "mixed", "unclear", "unknown"]


class Estimate(NamedTuple):
    """A value and its 95 % interval; None: there is no interval."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Score:
    """A metric of one algorithm on the user's test rows: mean and standard deviation over n splits."""

    algorithm: str
    metric: str
    mean: float
    std: float | None
    n: int


@dataclass(frozen=True)
class Gain:
    """How much better the report's model is than a rival; above 0 it is better."""

    rival: str
    metric: str
    gain: Estimate
    wins: int
    ties: int
    losses: int
    verdict: Verdict


@dataclass(frozen=True)
class Help:
    """Question 1: did learning together help?"""

    main: str
    scores: tuple[Score, ...]
    gains: tuple[Gain, ...]
    worth: Worth
    words: tuple[str, ...]


@dataclass(frozen=True)
class Listening:
    """Question 2: whose data did the model listen to, and when?"""

    shares: Mapping[str, float]  # of the information or the weight, the user's own included
    prior: float
    relevance: Mapping[str, float]  # empty: the algorithm gives none
    refused: tuple[str, ...]
    silent: tuple[str, ...]
    rounds: Mapping[str, tuple[float, ...]]  # weight of each silo, round by round; empty: not an iterative method
    words: tuple[str, ...]


@dataclass(frozen=True)
class Effect:
    """What one feature does in the model, and in one trained alone (None: unknown)."""

    name: str
    together: float
    alone: float | None
    per: str = ""  # by how much the feature rises


@dataclass(frozen=True)
class Learned:
    """Question 3: what did the model learn?"""

    kind: Literal["coefficients", "importance"]
    unit: str
    effects: tuple[Effect, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Group:
    """Test rows that have something in common. `right`: accuracy, or the mean absolute error of a regression."""

    name: str
    rows: int
    right: Estimate
    predicted: float
    observed: Estimate


@dataclass(frozen=True)
class Grouping:
    """Question 4, for one column."""

    column: str
    groups: tuple[Group, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sureness:
    """Question 5: how sure is it? `bins` have the rows in the order of what was predicted for them."""

    train_rows: int
    test_rows: int
    measured: str  # what `predicted` and `observed` are, in words
    scores: Mapping[str, Mapping[str, float]]  # metric -> model -> value on the test rows of one split
    bins: tuple[Group, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sent:
    """A quantity that left silos: how many numbers (or words) of each."""

    what: str
    why: str
    numbers: Mapping[str, int]


@dataclass(frozen=True)
class Traffic:
    """Bytes sent and received over all rounds of one run, by a silo at most and by all."""

    algorithm: str
    rounds: int
    bytes_each: int
    bytes_total: int


@dataclass(frozen=True)
class Cost:
    """Question 6: what did it cost and what was shared?"""

    sent: tuple[Sent, ...]
    traffic: tuple[Traffic, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Footprint:
    """What every algorithm reached for what it cost, as a table, and what the numbers rest on."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Sense:
    """What one measure says of a user and another silo; `back`: the other way, where that is not the same."""

    measure: str
    title: str
    unit: str
    value: Estimate
    back: Estimate | None
    differs: bool  # by more than chance explains
    shade: int  # 0 to 4: the darker, the more times what chance explains


@dataclass(frozen=True)
class Other:
    """Another silo as a user sees it: all measures as one, and every sense by itself."""

    name: str
    distance: Estimate
    differs: tuple[str, ...]
    senses: tuple[Sense, ...]


@dataclass(frozen=True)
class Similar:
    """Question 7: who is like me, in what sense, and what does it rest on? The most alike first."""

    others: tuple[Other, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class Resemblance:
    """All silos beside one another: the matrix of all measures as one, the map and what crossed the border."""

    names: tuple[str, ...]
    matrix: tuple[tuple[Estimate, ...], ...]
    differs: tuple[tuple[bool, ...], ...]
    places: Mapping[str, tuple[float, float]]
    ellipses: Mapping[str, tuple[float, ...]]  # x, y, half axes and angle; empty: none
    trust: str  # how far to trust the map
    groups: str
    sent: tuple[tuple[str, str, str, str], ...]  # measure, what, sent, received
    resamples: int
    min_group: int


@dataclass(frozen=True)
class Choice:
    """Whom the user might have chosen before training: of every other silo its name and what each method says."""

    methods: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]  # empty: the words say why
    words: tuple[str, ...]
    told: tuple[str, ...] = ()  # to the others, after the selection
    small: str = ""  # what the numbers mean


@dataclass(frozen=True)
class OwnData:
    """What could be better in the user's own data; `found`: kind, what, how much and how sure, finding by finding."""

    found: tuple[tuple[str, str, str, str], ...]
    tests: int
    alpha: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Curve:
    """A metric round by round, from before round 1; None where it was not measured."""

    algorithm: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Credited:
    """What one silo did for the user, what it was worth, and its share of a reward by scheme, in per cent."""

    silo: str
    rows: int
    rounds: str
    weight: float
    bytes_up: int
    ndoye: str
    influence: str
    shapley: str
    value: Estimate
    paid: Mapping[str, str]


@dataclass(frozen=True)
class Credit:
    """Who deserves credit? Without lines, the words say why there are none."""

    lines: tuple[Credited, ...]
    words: tuple[str, ...]
    small: str
    weight: str = "weight"


@dataclass(frozen=True)
class Differing:
    """A feature in which another silo would change the model: its share of the difference of gradients."""

    silo: str
    feature: str
    share: float
    low: float  # NaN: no interval
    high: float
    clear: bool  # more than chance explains


@dataclass(frozen=True)
class Explained:
    """Reasons, silo by silo; features that silos disagree about; and how sure single predictions are."""

    reasons: Mapping[str, tuple[str, ...]]
    differing: tuple[Differing, ...]
    intervals: tuple[str, ...]


@dataclass(frozen=True)
class Hospital:
    """All that the report says about one user."""

    name: str
    algorithm: str
    notes: tuple[str, ...]
    help: Help
    listening: Listening
    learned: Learned
    groupings: tuple[Grouping, ...]
    without_groups: str  # why there are none; empty if there are
    sureness: Sureness
    cost: Cost
    credit: Credit
    curves: tuple[Curve, ...]
    model_hash: str
    similar: Similar | None = None
    own_data: OwnData | None = None  # None: it was not looked at
    explained: Explained | None = None
    choice: Choice | None = None  # None: nobody was asked


@dataclass(frozen=True)
class Engineer:
    """What is needed to do it again."""

    config: Mapping[str, Any]
    data_hash: str
    seconds: Mapping[str, float]
    criterion: str  # of the curves
    key: Mapping[str, tuple[int, ...]]  # of every seed, from which all other JAX keys are folded


@dataclass(frozen=True)
class Contents:
    """Everything that the report says. `to_dict` gives plain values for JSON."""

    title: str
    made: str
    origin: str
    kind: str
    task: str
    label: str  # what is predicted
    people: str  # what rows are: patients, passengers
    place: str  # what silos are: hospital, group
    sizes: Mapping[str, tuple[int, int]]  # silo -> rows for training, for test
    split: str  # the split whose test rows are looked at, in words
    min_group: int
    overridden: tuple[str, ...]  # what the user chose otherwise than the defaults
    notes: tuple[str, ...]  # about the tables
    hospitals: tuple[Hospital, ...]
    overall: Help | None  # the mean over users, if there are several
    engineer: Engineer
    resemblance: Resemblance | None = None
    footprint: Footprint | None = None  # of the whole comparison; None: its folder is not known

    def to_dict(self) -> dict[str, Any]:
        """As numbers, words, lists and dicts; numbers that JSON does not know are None."""
        return plain(asdict(self))


def plain(value: Any) -> Any:
    """A value as JSON can hold it.

    >>> plain({"a": (1.0, float("nan")), "b": Estimate(0.5)})
    {'a': [1.0, None], 'b': {'value': 0.5, 'low': None, 'high': None}}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Estimate):
        return {k: plain(v) for k, v in value._asdict().items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
