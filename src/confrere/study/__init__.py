"""Studies: algorithms x users x seeds x numbers, tuned honestly, compared so that a reviewer would believe it.

contenders   what the user gave -> algorithms with their candidates for every open number
cases        silos, users, seeds -> rows to train on, folds to tune on, rows to measure on
engine       the traced program: experiments of one algorithm and shape, vmapped
blocks       cases in blocks that respect a memory limit, spread over devices
tuning       cross-validation curves -> the candidate and the round to take
written      what models and algorithms compute, as a hash
store        finished cells on disk, found again by a hash of what determines them
study        Study: all of it
result       StudyResult: tables, paired differences, curves, summaries, plots, files
"""

from confrere.study.result import StudyResult
from confrere.study.study import Study

__all__ = ["Study", "StudyResult"]
