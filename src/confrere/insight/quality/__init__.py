"""Feedback to a silo about its own data.

    findings         columns with codes for gaps, slips of units, impossible or rounded values, or unlike elsewhere
    harmful_rows     rows of one's own that hurt one's own model
    label_suspects   labels of one's own that may be wrong
    to_others        what other silos are told after a selection
    record_next      which column to record next
    feedback         all of it

Rows stay in their silo: of other silos only aggregates are used, which `shared` lists.
"""

from confrere.insight.quality.feedback import Feedback, feedback
from confrere.insight.quality.finding import Finding
from confrere.insight.quality.findings import Findings, findings
from confrere.insight.quality.labels import Suspect, Suspects, label_suspects
from confrere.insight.quality.next_feature import Gain, Next, record_next
from confrere.insight.quality.others import Difference, ToOther, to_others
from confrere.insight.quality.rows import HarmfulRow, harmful_rows

__all__ = [
    "Difference", "Feedback", "Finding", "Findings", "Gain", "HarmfulRow", "Next", "Suspect", "Suspects", "ToOther",
    "feedback", "findings", "harmful_rows", "label_suspects", "record_next", "to_others",
]  # fmt: skip
