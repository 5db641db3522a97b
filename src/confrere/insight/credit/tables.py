"""Values and ledgers as tables for a terminal, and in words."""

import math
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from confrere.insight.credit.schemes import MEANINGS, Scheme
from confrere.selection.words import between, signed, size_of

if TYPE_CHECKING:
    from confrere.insight.credit.ledger import Ledger
    from confrere.insight.credit.shapley import Shapley, Worth

AUTO = "evidence"


def columns(table: Table, *titles: str) -> Table:
    """A table with columns: the first for names, the others for numbers."""
    for k, title in enumerate(titles):
        table.add_column(title, justify="left" if k == 0 else "right")
    return table


def with_interval(worth: "Worth", place: int) -> str:
    """A number and its interval, or that it is not known."""
    if not math.isfinite(worth.values[place]):
        return "took no part"
    return f"{signed(worth.values[place])} ({between(worth.low[place], worth.high[place])})"


def shapley_table(found: "Shapley") -> Table:
    """What every silo is worth to the user."""
    drawn = "" if found.exact else f" Drawn orders leave each value open by ± {max_error(found):.4f} at most."
    table = columns(
        Table(
            title=Text(f"What every silo is worth to {found.names[found.user]}"),
            caption=Text(f"fall of the user's loss a row. 95 % intervals: {found.resampled}.{drawn}"),
        ),
        "Silo", "Shapley value", "Influence (the last to join)",
    )  # fmt: skip
    for i, name in enumerate(found.names):
        if i != found.user:
            table.add_row(Text(name), with_interval(found.value, i), with_interval(found.influence, i))
    return table


def max_error(found: "Shapley") -> float:
    """The largest error of drawing orders."""
    return max((e for e in found.error.tolist() if math.isfinite(e)), default=0.0)


def ledger_table(ledger: "Ledger") -> Table:
    """What every silo did in the run, and what it was worth."""
    run, found = ledger.run, ledger.shapley
    table = columns(
        Table(
            title=Text(f"Who deserves credit for the model of {ledger.names[ledger.user]}? ({run.algorithm})"),
            caption=Text(
                f"Influence and Shapley: fall of the user's loss a row, with 95 % intervals ({found.resampled}). "
                "Rows, rounds, weight and bytes are counted, and have no interval."
            ),
        ),
        "Silo", "Rows", "Rounds", weight_title(ledger), "Given", "Ndoye rank (transfer loss)", "Influence", "Shapley",
    )  # fmt: skip
    for i, name in enumerate(ledger.names):
        if i == ledger.user:
            continue
        weight = run.weight[i]
        table.add_row(
            Text(name), str(int(ledger.rows[i])), f"{int(run.joined[i])} of {run.rounds}",
            f"{weight:.2f}" if math.isfinite(weight) else "not known", size_of(int(run.bytes_up[i])),
            rank_cell(ledger, i), with_interval(found.influence, i), with_interval(found.value, i),
        )  # fmt: skip
    return table


def weight_title(ledger: "Ledger") -> str:
    """What the weight is of."""
    return "Share of the information" if ledger.run.once else "Summed weight"


def rank_cell(ledger: "Ledger", place: int) -> str:
    """A rank, and the score behind it with its interval."""
    rank, ranked = ledger.ranks[place], ledger.ndoye
    if not math.isfinite(rank):
        return "not asked"
    scores = between(float(ranked.low[place]), float(ranked.high[place]))
    return f"{rank:g} ({signed(float(ranked.scores[place]))}, {scores})"


def payment_table(ledger: "Ledger", schemes: tuple[Scheme, ...] | None = None) -> Table:
    """What every scheme pays every silo."""
    chosen = tuple(ledger.payouts) if schemes is None else schemes
    meant = "; ".join(f"{s}: {MEANINGS[s]}" for s in chosen)
    known = any(s in ("influence", "shapley") for s in chosen)
    none = "have no interval: they pay for counts or ranks, or (sure) to those whom intervals have chosen already."
    none += " Nor has what is left over."
    ends = f"95 % intervals in brackets; the other schemes {none}" if known else f"Such schemes {none}"
    table = columns(
        Table(
            title=Text(f"A budget of {ledger.budget:g}, shared out by {ledger.names[ledger.user]}"),
            caption=Text(f"{meant}. {ends}"),
        ),
        "Silo", *chosen,
    )  # fmt: skip
    for i, name in enumerate(ledger.names):
        if i != ledger.user:
            table.add_row(Text(name), *(payment_cell(ledger, s, i) for s in chosen))
    table.add_section()
    table.add_row("left over", *(money(ledger.left(s), ledger.budget) for s in chosen))
    return table


def payment_cell(ledger: "Ledger", scheme: Scheme, place: int) -> str:
    """An amount, with its interval where there is one."""
    paid = ledger.payouts[scheme]
    amount = money(float(paid.amounts[place]), ledger.budget)
    if not math.isfinite(paid.low[place]):
        return amount
    low, high = (money(float(v[place]), ledger.budget) for v in (paid.low, paid.high))
    return f"{amount} ({low} to {high})"


def money(amount: float, budget: float) -> str:
    """An amount with digits that suit the budget.

    >>> money(312.456, 1000), money(0.3124, 1), money(0.0, 1)
    ('312', '0.312', '0')
    """
    if amount <= 1e-9 * budget:
        return "0"
    digits = max(0, min(6, 3 - math.ceil(math.log10(max(budget, 1e-6))))) if budget < 1000 else 0
    return f"{amount:.{digits}f}"


def credit_in_words(ledger: "Ledger", scheme: Scheme = "shapley") -> list[str]:
    """Who earned what by one scheme, and how sure that is."""
    user, found = ledger.names[ledger.user], ledger.shapley
    low, high = found.total_interval
    chance = ", which chance may explain" if low <= 0 <= high else ""
    fall = f"a fall of {signed(found.total)} ({between(low, high)}){chance}"
    gain = f"from {found.alone:.4f} to {found.together:.4f} a row, {fall}"
    said = [f"With all others, the loss of {user} goes {gain}, on {found.judged} ({found.made})."]
    said += [
        f"{ledger.names[i]} sent in every round what {user} sent: by influence, shapley and sure it earns nothing."
        for i in ledger.run.copies
    ]
    paid = sorted(ledger.others, key=lambda n: -ledger.paid(n, scheme))
    earning = [n for n in paid if ledger.paid(n, scheme) > 0]
    if not earning:
        return [
            *said,
            f"By {scheme} nobody earns anything{by_chance(ledger, scheme)}: the budget of {ledger.budget:g} is kept.",
        ]
    shares = ", ".join(f"{n} {payment_cell(ledger, scheme, ledger.names.index(n))}" for n in earning)
    said.append(f"By {scheme}, of a budget of {ledger.budget:g}: {shares}.")
    nothing = [n for n in paid if n not in earning]
    if nothing:
        said.append(f"Nothing goes to {', '.join(nothing)}.")
    if scheme in ("influence", "shapley"):
        values = found.value if scheme == "shapley" else found.influence
        sure = [n for n in earning if values.low[ledger.names.index(n)] > 0]
        unsure = [n for n in earning if n not in sure]
        if unsure:
            said.append(f"Chance may explain what {', '.join(unsure)} earned: the interval of the value reaches 0.")
        said.append(f"{money(ledger.left(scheme), ledger.budget)} is kept, for what chance may explain of the values.")
    return said


def by_chance(ledger: "Ledger", scheme: Scheme) -> str:
    """Whether silos that earn nothing seemed to help, in words."""
    worth = ledger.shapley.influence if scheme == "influence" else ledger.shapley.value
    seemed = scheme in ("influence", "shapley", "sure") and any(v > 0 for v in worth.values.tolist())
    return ", as chance may explain all that was found" if seemed else ""
