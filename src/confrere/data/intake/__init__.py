"""Intake of tables: from files and tables as hospitals have them to silos that agree on features.

read      files and tables of any library -> polars
tidy      inside a silo: numbers, levels, missing values; cells that cannot be meant are refused
survey    inside a silo: which columns there are; between silos: which become features, and which task it is
layout    inside a silo: levels and gaps; between silos: which features there are
summary   inside a silo: counts, sums, levels of the training rows; between silos: the encoding
encoding  inside a silo: rows of features
advice    inside a silo: columns that look wrong; between silos: yes or no on codes and zeros
messages  all that passes from a silo to the others, and the record of it
tables    the `source` of the silos: does the second half again whenever training rows or silos change
"""

from confrere.data.intake.encoding import Encoding
from confrere.data.intake.load import from_folder, from_frames, from_table
from confrere.data.intake.options import make_options

__all__ = ["Encoding", "from_folder", "from_frames", "from_table", "make_options"]
