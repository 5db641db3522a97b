"""A study's tables as plain values, for JSON."""

from collections.abc import Sequence
from typing import Any

from confrere.study.result import StudyResult


def means(result: StudyResult, metrics: Sequence[str]) -> dict[str, Any]:
    """user -> algorithm -> metric -> mean and standard deviation; the mean over users is called "all"."""
    found: dict[str, Any] = {}
    for metric in metrics:
        for by in ("user", "all") if len(result.users) > 1 else ("user",):
            for row in result.table(metric, by=by).to_dicts():
                of_user = found.setdefault(row["user"], {}).setdefault(row["algorithm"], {})
                of_user[metric] = {"mean": row["mean"], "std": row["std"]}
    return found


def differences(result: StudyResult, a: str, b: str, metrics: Sequence[str]) -> dict[str, Any]:
    """metric -> one row per user: a minus b with its interval."""
    return {metric: result.paired(a, b, metric).to_dicts() for metric in metrics}
