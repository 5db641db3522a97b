"""Rounds across processes: a hub and four sites on one machine, beside Flower's deployment engine in the same run.

confrere: real studies over NVIDIA FLARE with mutual TLS; sites train one step of FedAvg, the hub checks, averages and
writes its state to the disk in every round. Flower: a SuperLink and four SuperNodes without TLS, whose clients add 1 to
what they receive and whose server averages; nothing is trained and nothing is written. Times are from round to round,
without the first.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE))

from deployed import MODELS, SITES, Pace, federation, pace_of, parts_of, study  # noqa: E402
from environments import last_words, prepare  # noqa: E402

ROUNDS = {10: 300, 45_012: 150, 10_004_555: 12}  # of confrere
PEERS_ROUNDS = {10: 6, 45_012: 5, 10_004_555: 5}
QUICK_ROUNDS, QUICK_PEERS_ROUNDS = 6, 3
LEAST = {10: 100, 10_004_555: 3}  # times fewer seconds than Flower
LARGEST = max(MODELS)
COMPRESSIONS = ("", "bits=16", "bits=8", "top_k=0.01")
MEGABITS, SLOW_ROUNDS = 100, 6  # of a hospital's line
TIMEOUT_S = 900


def section(quick: bool) -> str:
    """The tables of a comparison, of the parts of a round, and of compression."""
    with federation() as home:
        ours = {n: pace_of(home, study(n, QUICK_ROUNDS if quick else ROUNDS[n])) for n in MODELS}
        quickly = compressed_ways(home, QUICK_ROUNDS if quick else ROUNDS[LARGEST], quick)
    with federation(MEGABITS * 1e6 / 8) as home:
        slowly = compressed_ways(home, SLOW_ROUNDS, quick)
    peers = {n: flower(n, QUICK_PEERS_ROUNDS if quick else PEERS_ROUNDS[n]) for n in MODELS}
    parts = {n: parts_of(study(n, 1), 3 if quick or n == LARGEST else 50) for n in MODELS}
    return "\n\n".join(
        ["## Deployment", " ".join((__doc__ or "").split()), compared(ours, peers), divided(ours, parts),
         compressed(quickly, slowly)]
    )  # fmt: skip


def compressed_ways(home: Path, rounds: int, quick: bool) -> dict[str, Pace]:
    """The largest model, its messages as they are and compressed."""
    return {way: pace_of(home, study(LARGEST, rounds, way)) for way in (COMPRESSIONS[::2] if quick else COMPRESSIONS)}


def flower(numbers: int, rounds: int) -> list[float] | str:
    """Seconds of Flower's rounds but the first, or why there are none."""
    environment = prepare("flower")
    if environment.python is None:
        return environment.reason
    command = [str(environment.python), str(HERE / "peers" / "flower_deployed.py"), str(numbers), str(rounds)]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=own, timeout=TIMEOUT_S)
    if done.returncode:
        return last_words(done.stderr or done.stdout)
    return json.loads(done.stdout.splitlines()[-1])[1:]


def compared(ours: dict[int, Pace], peers: dict[int, list[float] | str]) -> str:
    """Seconds a round, side by side."""
    lines = ["| numbers | confrere, s | range | rounds | Flower 1.41, s | range | rounds | times faster | at least |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for n, pace in ours.items():
        theirs = peers[n]
        mine = statistics.median(pace.seconds)
        if isinstance(theirs, str):
            lines.append(f"| {n:,} | {told(pace.seconds)} | did not run: {theirs} | - | - | - | - |")
            continue
        ratio = statistics.median(theirs) / mine
        least = LEAST.get(n)
        verdict = "-" if least is None else f"{least}, {'kept' if ratio >= least else '**missed**'}"
        lines.append(f"| {n:,} | {told(pace.seconds)} | {told(theirs)} | {ratio:.1f} | {verdict} |")
    return "\n".join(lines)


def told(seconds: list[float]) -> str:
    """Median, range and number of rounds, as three cells."""
    return f"{statistics.median(seconds):.3g} | {min(seconds):.3g} to {max(seconds):.3g} | {len(seconds)}"


def divided(ours: dict[int, Pace], parts: dict[int, dict[str, float]]) -> str:
    """Where the time of a round goes."""
    names = list(next(iter(parts.values())))
    cores = min(os.cpu_count() or 1, len(SITES))
    lines = [
        "Where the time goes: the parts of a round, measured in one process without an engine, in seconds. What is "
        f"left of a round after the hub's parts and {len(SITES)} sites on {cores} cores is the engine's: four "
        "processes on the way from the hub's job to a site's, TLS, and copies.",
        "",
        f"| numbers | {' | '.join(names)} | a round over the engine | left for the engine |",
        "|---" * (len(names) + 3) + "|",
    ]
    for n, found in parts.items():
        whole = statistics.median(ours[n].seconds)
        known = sum(found.values()) + found["one site"] * (len(SITES) / cores - 1)
        cells = " | ".join(f"{found[name]:.2g}" for name in names)
        lines.append(f"| {n:,} | {cells} | {whole:.3g} | {max(0.0, whole - known):.2g} |")
    return "\n".join(lines)


def compressed(quickly: dict[str, Pace], slowly: dict[str, Pace]) -> str:
    """What compression of sites' messages does to rounds of the largest model; what is received stays whole."""
    lines = [
        f"Compression of what sites send (`compress` in study.toml), {LARGEST:,} numbers; what they receive is not "
        "compressed. Between processes of one machine nothing is gained by fewer bytes but their copies; the last "
        f"columns are for sites whose connections to the hub pass {MEGABITS} Mbit/s each way (a proxy that waits).",
        "",
        "| compress | bytes that sites send | of the bytes | s a round | range | rounds | of the time "
        f"| {MEGABITS} Mbit/s: s a round | range | rounds | of the time |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for way in quickly:
        sent = quickly[way].bytes
        cells = [f"{told(found[way].seconds)} | {of_plain(found, way):.0%}" for found in (quickly, slowly)]
        lines.append(f"| `{way or '-'}` | {sent:,} | {sent / quickly[''].bytes:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_plain(found: dict[str, Pace], way: str) -> float:
    """The time of a round as a share of that without compression."""
    return statistics.median(found[way].seconds) / statistics.median(found[""].seconds)
