"""Floating-point operations of a run, from its compiled program.

XLA's cost analysis counts the body of a loop once. Here every loop's body is counted by itself, and as often as it is
run: the compiled program says of its loops how often (`known_trip_count`),

    total(f) = once(f) + sum over loops l in f of (trips_l total(body_l) - once(body_l))

Loops that run until something is reached say no number: their bodies count once, and `unknown` says how many there are,
so that the count is then at least so much. Operations are those of the numbers' type and of counters alike, as XLA
counts them; sines, logarithms and the like are not among them.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
LOOP = re.compile(r"\bwhile\(.*?body=%?([\w.\-]+)")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
CALLED = re.compile(r"\b(?:calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
METADATA = re.compile(r", metadata=\{[^}]*\}")


class Operations(NamedTuple):
    """How many operations a program takes, and how many of its loops do not say how often they run."""

    count: float
    unknown: int


def operations(function: Callable[..., Any], *arguments: Any) -> Operations:
    """The operations of one call, from shapes alone: it is compiled and not run."""
    compiled = jax.jit(function).lower(*arguments).compile()
    return of_program(compiled.as_text() or "")


def of_program(text: str) -> Operations:
    """The operations of a compiled program, loops counted as often as they run."""
    bodies = computations(text)
    entry = next(name for name, (is_entry, _) in bodies.items() if is_entry)
    once: dict[str, float] = {}

    def counted_once(name: str) -> float:
        if name not in once:
            once[name] = cost(as_entry(text, name))
        return once[name]

    def total(name: str) -> Operations:
        count, unknown = counted_once(name), 0
        for body, trips in loops(name, bodies):
            inner = total(body)
            count += (1 if trips is None else trips) * inner.count - counted_once(body)
            unknown += inner.unknown + (trips is None)
        return Operations(count, unknown)

    return total(entry)


def computations(text: str) -> dict[str, tuple[bool, list[str]]]:
    """Every computation of a program: whether it is the entry, and its lines."""
    found: dict[str, tuple[bool, list[str]]] = {}
    name = None
    for line in text.splitlines():
        head = COMPUTATION.match(line)
        if head:
            name = head[2]
            found[name] = (bool(head[1]), [])
        elif line.startswith("}"):
            name = None
        elif name is not None:
            found[name][1].append(line)
    return found


def loops(name: str, bodies: dict[str, tuple[bool, list[str]]]) -> list[tuple[str, int | None]]:
    """The loops of a computation and of those that it calls: their bodies, and how often they run."""
    found: list[tuple[str, int | None]] = []
    for line in bodies[name][1]:
        loop = LOOP.search(line)
        if loop:
            trips = TRIPS.search(line)
            found.append((loop[1], int(trips[1]) if trips else None))
            continue
        called = CALLED.findall(line)
        for branches in BRANCHES.findall(line):
            called += [branch.strip().lstrip("%") for branch in branches.split(",")]
        for other in called:
            found += loops(other, bodies)
    return found


def as_entry(text: str, name: str) -> str:
    """The program that consists of one of its computations, and of those before it, which it may call."""
    kept: list[str] = ["HloModule one\n"]
    inside = False
    for line in text.splitlines():
        head = COMPUTATION.match(line)
        if head:
            inside = True
            line = line.removeprefix("ENTRY ")
            line = f"ENTRY {line}" if head[2] == name else line
        if inside:
            kept.append(METADATA.sub("", line))
        if line.startswith("}"):
            inside = False
            if head_of_last(kept) == name:
                return "\n".join(kept)
    raise KeyError(name)


def head_of_last(kept: list[str]) -> str:
    """The name of the computation that was kept last."""
    return next(head[2] for line in reversed(kept) if (head := COMPUTATION.match(line)))


def cost(text: str) -> float:
    """XLA's count of the operations of a program, bodies of loops once.

    The only door to it that takes a program's text is not among JAX's public names.
    """
    try:
        from jaxlib._hlo import hlo_module_from_text
        from jaxlib._jax import hlo_module_cost_analysis
    except ImportError as problem:
        raise NotImplementedError("this version of JAX does not count operations of a part of a program") from problem
    found = hlo_module_cost_analysis(jax.local_devices(backend="cpu")[0].client, hlo_module_from_text(text))
    return float(found.get("flops", 0.0))
