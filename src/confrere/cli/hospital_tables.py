"""Tables of the comparison on real silos, written so that they can be pasted into a Markdown page."""

from typing import Any

from confrere.cli.auto_tables import show, signed


def show_hospitals(report: dict[str, Any]) -> None:
    """Every setting by user, differences with intervals, and all real silos together."""
    seeds = report["seeds"]
    for name, setting in report["settings"].items():
        show_means(f"{name}: log-loss / accuracy on the user's test rows, mean over {seeds} splits", setting["users"])
        show_differences(f"{name}: auto minus the other, 95 % intervals", setting["differences"])
    show_together(report["real_cells"], seeds)


def show_means(title: str, users: dict[str, Any]) -> None:
    """One row per method, one column per user."""
    header = ["method", *users]
    rows = [
        [
            method,
            *(both(users[user][method]["log_loss"]["mean"], users[user][method]["accuracy"]["mean"]) for user in users),
        ]
        for method in next(iter(users.values()))
    ]
    show(title, header, rows)


def show_differences(title: str, differences: dict[str, Any]) -> None:
    """One row per rival and user."""
    rows = [
        [rival, loss["user"], with_interval(loss), with_interval(accuracy), f"{loss['wins']}/{loss['n']}"]
        for rival, by_metric in differences.items()
        for loss, accuracy in zip(by_metric["log_loss"], by_metric["accuracy"], strict=True)
    ]
    show(title, ["other", "user", "log-loss", "accuracy", "lower log-loss"], rows)


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


def both(log_loss: float, accuracy: float) -> str:
    """Two numbers in one place."""
    return f"{log_loss:.4f} / {accuracy:.4f}"


def with_interval(row: dict[str, Any]) -> str:
    """A difference and its interval; without one, if there is a single split."""
    if row["low"] is None:
        return signed(row["difference"])
    return f"{signed(row['difference'])} [{signed(row['low'])}, {signed(row['high'])}]"
