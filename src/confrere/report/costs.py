"""Question 6: what did it cost, and what was shared?"""

import re
from collections.abc import Iterable

from confrere.answers.answer import Answer
from confrere.budget import in_words as size
from confrere.data.source import Shared
from confrere.report.contents import Cost, Sent, Traffic
from confrere.report.metrics import MAIN
from confrere.study.result import StudyResult

RECEIVED = (
    "What is received is counted as the program hands it over: in every round {user} is given a table with room for "
    "every silo's first message and, beside it, the pooled sum of the later ones, so that it receives more bytes than "
    "the others send."
)
QUOTED = re.compile(r"'[^']*'")


def cost_of(answer: Answer, result: StudyResult, main: str) -> Cost:
    """What left each silo for this answer, and the traffic of one run of every algorithm."""
    sent = sent_by(answer.shared)
    traffic = tuple(traffic_of(result, name, answer.user) for name in result.algorithms)
    return Cost(sent, traffic, tuple(cost_in_words(answer, sent, traffic, main)))


def sent_by(shared: Iterable[Shared]) -> tuple[Sent, ...]:
    """Quantities that are alike put together: the same words but for the name of the column.

    >>> entries = [
    ...     Shared("a", "sum of 'x'", 1, "w"),
    ...     Shared("a", "sum of 'y'", 1, "w"),
    ...     Shared("b", "sum of 'x'", 1, "w"),
    ... ]
    >>> sent_by(entries)
    (Sent(what='sum of a column (2 columns)', why='w', numbers={'a': 2, 'b': 1}),)
    """
    counts: dict[tuple[str, str], dict[str, int]] = {}
    columns: dict[tuple[str, str], set[str]] = {}
    for entry in shared:
        key = (QUOTED.sub("a column", entry.what), entry.why)
        by_silo = counts.setdefault(key, {})
        by_silo[entry.silo] = by_silo.get(entry.silo, 0) + entry.count
        columns.setdefault(key, set()).update(QUOTED.findall(entry.what))
    return tuple(
        Sent(what + (f" ({len(columns[what, why])} columns)" if len(columns[what, why]) > 1 else ""), why, numbers)
        for (what, why), numbers in counts.items()
    )


def traffic_of(result: StudyResult, algorithm: str, user: str) -> Traffic:
    """The bytes of one run."""
    cell = result.of(algorithm, user)[0]
    rounds = cell.partners.shape[1]
    return Traffic(algorithm, rounds, rounds * cell.bytes_each, rounds * cell.bytes_total)


def cost_in_words(answer: Answer, sent: tuple[Sent, ...], traffic: tuple[Traffic, ...], main: str) -> list[str]:
    """No row left; what did; and how many bytes."""
    said = ["No row of data left any silo. What did leave is listed in full below."]
    own = sum(entry.numbers.get(answer.user, 0) for entry in sent)
    said.append(
        f"{answer.user} itself sent {own} numbers or words." if own else f"{answer.user} itself sent nothing at all."
    )
    for t in traffic:
        if t.algorithm == main:
            said.append(
                f"One run takes {t.rounds} {'round' if t.rounds == 1 else 'rounds'} and {size(t.bytes_total)} in all, "
                f"at most {size(t.bytes_each)} for one silo."
            )
    if main in MAIN:
        said.append(RECEIVED.format(user=answer.user))
    return said
