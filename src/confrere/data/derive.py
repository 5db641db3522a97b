"""Derived columns: what silos recorded differently, made the same by arithmetic on numbers and dates.

    days_ill = "admission - onset"        dates become days, so that their difference is a number of days
    bmi = "weight / (height / 100) ** 2"

A formula knows columns, numbers, + - * / ** and brackets, and nothing else: it is read, never executed as a program.
"""

import ast
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from confrere.checks import WrongField
from confrere.data.intake.options import did_you_mean
from confrere.data.intake.tidy import MISSING_WORDS

OPERATORS: Mapping[type[ast.operator], Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}  # fmt: skip
SIGNS: Mapping[type[ast.unaryop], Any] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y")


def derived(
    frame: pl.DataFrame, formulas: Mapping[str, str], silo: str, label: str | None = None, silos: str | None = None
) -> pl.DataFrame:
    """The table with the derived columns; those that a formula used up and are dates are left out.

    The label and the column of silos (`silos`) are neither replaced nor used. A label that the table lacks can be made.

    >>> import polars as pl
    >>> table = pl.DataFrame({"onset": ["2020-03-01"], "admission": ["2020-03-08"], "age": [40]})
    >>> derived(table, {"days_ill": "admission - onset"}, silo="north").to_dicts()
    [{'age': 40, 'days_ill': 7.0}]
    """
    used: set[str] = set()
    made = []
    for name, formula in formulas.items():
        try:
            value, dates = worked_out_for(frame, name, formula, f"silo {silo!r}: {name} = {formula!r}", label, silos)
        except ValueError as problem:
            raise WrongField((name,), str(problem)) from problem
        used |= dates
        made.append(value.alias(name))
    return frame.drop([c for c in used if c not in formulas]).with_columns(made)


def worked_out_for(
    frame: pl.DataFrame, name: str, formula: str, where: str, label: str | None, silos: str | None
) -> tuple[pl.Series, set[str]]:
    """One derived column, and the columns of dates that it is made from."""
    tree = parsed(formula, where)
    columns = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    for column, what in ((label, "the label"), (silos, "the column of silos")):
        check_untouched(column, what, name, columns, frame, where)
    for column in columns:
        if column not in frame.columns:
            raise ValueError(f"{where}: there is no column {column!r}{did_you_mean(column, frame.columns)}")
    values = {column: as_numbers(frame[column], where) for column in columns}
    value = reckoned(tree.body, {column: numbers for column, (numbers, _) in values.items()}, where)
    if not isinstance(value, pl.Series):
        raise ValueError(f"{where}: it names no column")
    return finite(value, where), {column for column, (_, is_date) in values.items() if is_date}


def parsed(formula: Any, where: str) -> ast.Expression:
    """The formula as a tree, or what is wrong with it."""
    if not isinstance(formula, str):
        raise ValueError(f"{where}: a formula is a text such as 'admission - onset'")
    try:
        return ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError) as problem:
        raise ValueError(f"{where}: this is no formula ({problem.args[0]})") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"{where}: the formula is too long: make it in several columns") from None


def check_untouched(
    column: str | None, what: str, name: str, used: Sequence[str], frame: pl.DataFrame, where: str
) -> None:
    """Refuse a formula that replaces a column that is not to be touched, or is made from it."""
    if column is None:
        return
    if name == column and (what != "the label" or column in frame.columns):
        raise ValueError(f"{where}: {name!r} is {what}, which a formula may not replace: choose another name")
    if column in used:
        raise ValueError(f"{where}: {column!r} is {what}: a feature that is made from it would give the answer away")


def reckoned(node: ast.expr, values: Mapping[str, pl.Series], where: str) -> Any:
    """The value of a formula; numbers that grow too large and the like are refused."""
    try:
        return worked_out(node, values, where)
    except (OverflowError, ZeroDivisionError) as problem:
        raise ValueError(f"{where}: this cannot be worked out: a number is too large, or divided by zero") from problem
    except RecursionError:
        raise ValueError(f"{where}: the formula is too long: make it in several columns") from None


def combined(sign: ast.operator, left: Any, right: Any, where: str) -> Any:
    """Two parts of a formula, by its operator."""
    found = OPERATORS[type(sign)](left, right)
    if isinstance(found, complex):
        raise ValueError(f"{where}: {left!r} ** {right!r} is no real number")
    return found


def worked_out(node: ast.expr, values: Mapping[str, pl.Series], where: str) -> Any:
    """The value of a part of a formula."""
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return combined(sign, worked_out(left, values, where), worked_out(right, values, where), where)
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in SIGNS:
            return SIGNS[type(sign)](worked_out(operand, values, where))
    raise ValueError(
        f"{where}: only columns, numbers, + - * / ** and brackets are understood, not {ast.unparse(node)!r}"
    )


def as_numbers(column: pl.Series, where: str) -> tuple[pl.Series, bool]:
    """A column as numbers, dates as days; and whether it holds dates."""
    if column.dtype.is_numeric():
        return column.cast(pl.Float64).fill_nan(None), False
    if column.dtype in (pl.Date, pl.Datetime):
        return days(column.cast(pl.Date)), True
    text = column.cast(pl.String).str.strip_chars()
    text = text.set(text.str.to_lowercase().is_in(MISSING_WORDS), None)
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() == text.null_count():
        return numbers, False
    for form in DATES:
        dates = text.str.slice(0, 10).str.to_date(form, strict=False)
        if dates.null_count() == text.null_count():
            return days(dates), True
    row = int((numbers.is_null() & text.is_not_null()).arg_true()[0])
    raise ValueError(
        f"{where}: {column.name!r} is neither numbers nor dates (2020-03-01 or 1.3.2020), see row {row} (counted from "
        f"0): {text[row]!r}"
    )


def days(dates: pl.Series) -> pl.Series:
    """Days since 1970."""
    return dates.to_physical().cast(pl.Float64)


def finite(values: pl.Series, where: str) -> pl.Series:
    """Refuse what no row can mean: a division by zero."""
    known = values.drop_nulls()
    if not known.is_finite().all():
        row = int((values.is_infinite() | values.is_nan()).arg_true()[0])
        raise ValueError(f"{where}: the value of row {row} (counted from 0) is not finite: does it divide by zero?")
    return values
