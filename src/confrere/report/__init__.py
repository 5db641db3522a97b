"""The report: from silos, a study and answers to one HTML page that a clinician can read.

contents   all that the page says, as plain values
gather     from data to contents: `report_on`; one file per question (helping, listening, learning, grouping, sureness,
           costs, similar)
figures    the figures, as SVG; likeness: the map and the matrices of who is like whom
page       from contents to a file: `write_report`; sections, html, style
"""

from confrere.report.contents import Contents
from confrere.report.gather import report_on
from confrere.report.page import write_report

__all__ = ["Contents", "report_on", "write_report"]
