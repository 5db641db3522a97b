"""The exercises of the book, run again on the weather stations of Finland: one file per assignment.

A. Jung, Federated Learning: From Theory to Practice, and its notebooks (github.com/alexjungaalto/FederatedLearning,
Edition2024 and Edition2025). A file has a `run`, which computes everything anew, and `REFERENCES`, which says what the
numbers should be; `run_assignments` puts both together.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

ASSIGNMENTS = (
    "ml-basics", "gradient-methods", "design-principle", "fl-algorithms", "flavours", "graph-learning", "trustworthy",
    "ml-basics-2025", "ml-to-fl-2025", "design-principle-2025", "fl-algorithms-2025", "flavours-2025",
    "trustworthy-2025",
)  # fmt: skip


def run_assignments(names: Sequence[str], progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """The numbers of some assignments, with what they should be, as one JSON object."""
    from confrere.reproduce.book.numbers import flat

    assignments: dict[str, Any] = {}
    references: dict[str, Any] = {}
    for done, name in enumerate(names):
        if progress is not None:
            progress(done, len(names))
        module = importlib.import_module(f"confrere.reproduce.book.{name.replace('-', '_')}")
        assignments[name] = module.run()
        known = {path: module.REFERENCES.get(path) for path, _ in flat(assignments[name])}
        references[name] = {path: reference._asdict() for path, reference in known.items() if reference is not None}
    return {"assignments": assignments, "references": references}
