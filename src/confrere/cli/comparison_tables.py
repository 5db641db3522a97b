"""Tables of the comparison on real silos, written so that they can be pasted into a Markdown page."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from confrere.cli.auto_tables import show, signed


class Lines(NamedTuple):
    """A table in words: its header, and one row per method."""

    header: list[str]
    rows: list[list[str]]


def show_hospitals(report: dict[str, Any]) -> None:
    """Every setting by user, differences with intervals, and all real silos together."""
    seeds = report["seeds"]
    for name, setting in report["settings"].items():
        show_means(
            f"{name}: log-loss / accuracy on the user's test rows, mean over {seeds} splits, no intervals",
            setting["users"],
        )
        show_differences(f"{name}: auto minus the other, 95 % intervals", setting["differences"])
    show_together(report["real_cells"], seeds)


def show_every_method(report: dict[str, Any]) -> None:
    """One table per setting."""
    for name, table in every_method_tables(report):
        show(f"{name}: mean over users and {report['seeds']} splits, 95 % intervals", *table)


def every_method_tables(report: dict[str, Any]) -> Iterator[tuple[str, Lines]]:
    """Every setting with its table, the lowest log-loss first; differences are with training alone."""
    for name, rows in report["settings"].items():
        order = sorted(rows, key=lambda method: rows[method]["log_loss"]["mean"])
        lines = [[method, *columns(rows[method], method == report["alone"])] for method in order]
        titles = [text for metric in rows[order[0]] for text in (named(metric), f"minus {report['alone']}")]
        yield name, Lines(["method", *titles], lines)


def columns(row: dict[str, Any], is_alone: bool) -> list[str]:
    """Metric by metric, the mean and the difference with its interval."""
    pairs = ((f"{found['mean']:.4f}", "" if is_alone else with_interval(found)) for found in row.values())
    return [text for pair in pairs for text in pair]


def show_means(title: str, users: dict[str, Any]) -> None:
    """One row per method, one column per user; the metrics beside one another."""
    methods = next(iter(users.values()))
    rows = [
        [method, *(" / ".join(f"{found['mean']:.4f}" for found in users[user][method].values()) for user in users)]
        for method in methods
    ]
    show(title, ["method", *users], rows)


def show_differences(title: str, differences: dict[str, Any]) -> None:
    """One row per rival and user."""
    metrics = list(next(iter(differences.values())))
    rows = []
    for rival, by_metric in differences.items():
        for found in zip(*by_metric.values(), strict=True):
            first = found[0]
            better = f"{first['wins']}/{first['n']}"
            rows.append([rival, first["user"], *map(with_interval, found), better])
    show(title, ["other", "user", *(named(metric) for metric in metrics), f"better {named(metrics[0])}"], rows)


def without_repeats(differences: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every pair once: b minus a says no more than a minus b.

    >>> without_repeats({"auto": {"local": 1, "fedavg": 2}, "local": {"fedavg": 3}, "fedavg": {"local": 4}})
    {'auto': {'local': 1, 'fedavg': 2}, 'local': {'fedavg': 3}}
    """
    found: dict[str, dict[str, Any]] = {}
    for one, by_other in differences.items():
        kept = {other: rows for other, rows in by_other.items() if one not in found.get(other, {})}
        found |= {one: kept} if kept else {}
    return found


def named(metric: str) -> str:
    """A metric in words."""
    return {"log_loss": "log-loss", "rmse": "RMSE", "auroc": "AUROC"}.get(metric, metric)


def show_together(found: dict[str, Any], seeds: int) -> None:
    """The mean over all users of all settings, the best first."""
    order = sorted(found["log_loss"], key=lambda name: found["log_loss"][name])
    rows = [[name, f"{found['log_loss'][name]:.4f}", f"{found['accuracy'][name]:.4f}"] for name in order]
    show(f"All {found['users']} users (Titanic, heart disease with a shared scale), mean over {seeds} splits",
         ["method", "log-loss", "accuracy"], rows)  # fmt: skip
    for group, rest in found["auto_against"].items():
        by_user = rest["by_user"]
        print(
            f"auto minus the best {group} method ({rest['best']}): {signed(rest['difference'])} log-loss; "
            f"minus the best one of every user, chosen afterwards: {signed(by_user['mean'])} on the mean, "
            f"{signed(by_user['worst'])} for the worst user"
        )


def with_interval(row: dict[str, Any]) -> str:
    """A difference and its interval, or that there are too few splits for one.

    >>> with_interval({"difference": 0.05, "low": None, "high": None})
    '+0.0500 (no interval)'
    """
    if row["low"] is None:
        return f"{signed(row['difference'])} (no interval)"
    return f"{signed(row['difference'])} [{signed(row['low'])}, {signed(row['high'])}]"
