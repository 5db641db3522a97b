"""Energy and CO2: measured where the processor tells it, else estimated, with every assumption in words.

    joules = watts * processor seconds / number of processors      (or as measured)
    grams  = joules / 3.6e6 * grams per kilowatt-hour

`watts` is what the whole processor draws at full load. What memory, disks, network and cooling take is not in it, and
neither is what sending bytes takes. These are estimates without an interval: the assumptions are what they hang on.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

from confrere.checks import check_numbers
from confrere.insight.footprint.carbon import (
    ExtraMissing,
    Intensity,
    installed_source,
    intensity_of,
    power_per_thread,
    processor_power,
)

JOULES_PER_KWH = 3.6e6
CPU_INFO = Path("/proc/cpuinfo")
WITHOUT = "Memory, disks, network and cooling are not counted."
NO_INTERVAL = "An estimate without an interval: it is as good as what it assumes."


class Energy(NamedTuple):
    """Energy and CO2 of some work, and what the numbers rest on. None: not known."""

    cpu_seconds: float
    joules: float | None
    measured: bool  # by the processor's counters; else estimated
    watts: float | None
    grams: float | None  # of CO2 equivalents
    intensity: Intensity | None
    assumptions: tuple[str, ...]

    def share(self, cpu_seconds: float) -> "Energy":
        """The part of it that belongs to some of the processor seconds."""
        part = cpu_seconds / self.cpu_seconds if self.cpu_seconds > 0 else 0.0
        scaled = [None if a is None else part * a for a in (self.joules, self.grams)]
        return self._replace(cpu_seconds=cpu_seconds, joules=scaled[0], grams=scaled[1])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        place = None if self.intensity is None else self.intensity._asdict()
        return {**self._asdict(), "intensity": place, "assumptions": list(self.assumptions), "interval": None}


def energy_of(
    cpu_seconds: float, joules: float | None = None, watts: float | None = None, country: str | None = None
) -> Energy:
    """The energy and CO2 of so many processor seconds.

    joules: as measured, if they were. watts: of the whole processor at full load; by default what codecarbon's table
    has for it, or its assumption for one thread. country: whose electricity, as in "FRA"; without one no CO2 is told.

    >>> energy_of(3600.0, watts=100.0).joules == 3600 * 100 / __import__("os").cpu_count()
    True
    """
    check_numbers(cpu_seconds=cpu_seconds)
    if watts is not None:
        check_numbers(watts=watts)
    said: list[str] = []
    unknown: list[str] = []
    if joules is None:
        try:
            watts, how = assumed_power() if watts is None else (float(watts), "as given")
            threads = os.cpu_count() or 1
            joules = watts * cpu_seconds / threads
            said.append(
                f"Power: the processor draws {watts:g} W at full load ({how}), shared equally by its {threads} logical "
                "processors."
            )
        except ExtraMissing as problem:
            unknown.append(f"Energy is not known: {problem}, or say how many watts the processor draws (--watts).")
    else:
        said.append("Energy: measured by the processor's own counters (RAPL), with all that ran meanwhile.")
    intensity = None if country is None else intensity_of(country)
    grams = None
    if intensity is not None and joules is not None:
        grams = joules / JOULES_PER_KWH * intensity.grams_per_kwh
        said.append(
            f"Electricity: {intensity.grams_per_kwh:g} g of CO2 equivalents per kWh, the mean of {intensity.name} in "
            f"{intensity.year} ({intensity.source}); the hour and the supplier are not known."
        )
    elif country is None:
        unknown.append("CO2 is not told: it depends on where the electricity comes from (--country, as in FRA).")
    measured = joules is not None and not any(s.startswith("Power") for s in said)
    closing = [WITHOUT, NO_INTERVAL] if joules is not None else []
    return Energy(cpu_seconds, joules, measured, watts, grams, intensity, (*said, *unknown, *closing))


def assumed_power() -> tuple[float, str]:
    """What this machine's processor draws at full load, in watts, and how that is known."""
    model, virtual = processor()
    known = None if virtual else processor_power(model)
    if known is not None:
        return known, f"the thermal design power of {model} in {installed_source()}"
    each = power_per_thread()
    why = "a virtual machine's" if virtual else "not in its table"
    return each * (os.cpu_count() or 1), f"{each:g} W a thread, which {installed_source()} assumes: {model} is {why}"


def processor(file: Path = CPU_INFO) -> tuple[str, bool]:
    """The processor's name, and whether it is a virtual machine's."""
    try:
        lines = [line.partition(":") for line in file.read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "this processor", False
    facts = {name.strip(): value.strip() for name, _, value in reversed(lines)}
    return facts.get("model name", "this processor"), "hypervisor" in facts.get("flags", "").split()
