"""Footprint: what a run costs in bytes, operations, processor seconds, energy and CO2.

budget.py      (outside) stops a run before it exceeds its bytes
planned.py     bytes by silo and round, and operations, before anything is run
flops.py       operations of a compiled program, loops counted as often as they run
rapl.py        measured energy, where the processor tells it
carbon.py      carbon intensity by country, and the power of processors, from codecarbon's data files
energy.py      energy and CO2 as an estimate, with what was assumed
compared.py    a finished run: algorithms by accuracy per megabyte and per gram
"""

from confrere.insight.footprint.asked import footprint
from confrere.insight.footprint.compared import Price, RunFootprint
from confrere.insight.footprint.energy import Energy, energy_of
from confrere.insight.footprint.planned import Footprint

__all__ = ["Energy", "Footprint", "Price", "RunFootprint", "energy_of", "footprint"]
