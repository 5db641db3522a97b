"""Measured energy: the counters of the processor (RAPL), where the machine shows them.

Linux shows one folder per package, `intel-rapl:0` and so on (AMD's, too), with a counter `energy_uj` in microjoules
that starts anew at `max_energy_range_uj`. Counted are the packages, which contain their cores; the memory's own domain
is left out, as it is not everywhere. The counters are the machine's: what else ran meanwhile is in them. A counter is
read often enough (at every piece of work) that it does not go round twice between two readings.
"""

from pathlib import Path

ROOT = Path("/sys/class/powercap")


def packages(root: Path = ROOT) -> list[Path]:
    """The packages whose counters can be read."""
    found = []
    for folder in sorted(root.glob("intel-rapl:*")) if root.is_dir() else []:
        if folder.name.count(":") != 1:
            continue  # a part of a package
        try:
            if (folder / "name").read_text().strip().startswith("package"):
                read(folder / "energy_uj"), read(folder / "max_energy_range_uj")
                found.append(folder)
        except (OSError, ValueError):
            continue  # not for this user
    return found


def read(file: Path) -> int:
    """A number in a file."""
    return int(file.read_text().strip())


class Meter:
    """Joules since it was made, over all packages; `joules` is None where there are none to read."""

    def __init__(self, root: Path = ROOT):
        self.folders = packages(root)
        self.last = {folder: read(folder / "energy_uj") for folder in self.folders}
        self.total = 0

    def sample(self) -> None:
        """Read the counters; one that is lower than before has gone round once."""
        for folder in self.folders:
            now = read(folder / "energy_uj")
            rise = now - self.last[folder]
            self.total += rise if rise >= 0 else rise + read(folder / "max_energy_range_uj")
            self.last[folder] = now

    @property
    def joules(self) -> float | None:
        """What was used so far."""
        if not self.folders:
            return None
        self.sample()
        return self.total / 1e6
