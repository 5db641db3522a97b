"""What a finished run cost, with the operations of training once by each of its algorithms, if its data are there."""

from pathlib import Path

from confrere.data.fetch import DataNotFound
from confrere.insight.footprint.compared import RunFootprint, compared, read
from confrere.insight.footprint.flops import Operations
from confrere.insight.footprint.planned import training_operations
from confrere.program import Setup, numbers
from confrere.runs.run import Finished, opened, study_of
from confrere.study.cases import cases_of, seeded_silos, train_block
from confrere.study.runner import Progress, initial
from confrere.study.study import for_rounds
from confrere.study.users import chosen_users

NOT_THERE = "Operations were not counted, as the data of the run are not to be had: {problem}"


def run_footprint(
    folder: Path, country: str | None = None, watts: float | None = None, operations: bool = True,
    progress: Progress | None = None,
) -> RunFootprint:  # fmt: skip
    """The footprint of a folder with a finished run. Without its data, all but the operations."""
    result, journal = read(folder)
    if not operations:
        return compared(result, journal, country, watts)
    try:
        counted = counted_operations(opened(folder), progress)
    except (DataNotFound, FileNotFoundError) as problem:
        found = compared(result, journal, country, watts)
        return found.with_words(NOT_THERE.format(problem=problem))
    return compared(result, journal, country, watts, counted)


def counted_operations(finished: Finished, progress: Progress | None = None) -> dict[str, Operations | None]:
    """The operations of one run of every algorithm, as long as it was, for the first user on the first split."""
    result, study = finished.result, study_of(finished.config, finished.silos)
    model, how = study.settings.model, study.settings
    [(seed, split)] = seeded_silos(finished.silos, study.seeds[:1])
    users, _ = chosen_users(study.users, [split])
    [case] = cases_of(seed, split, users[:1], how.others, model, how.folds)
    block, found = train_block(case, model), dict[str, Operations | None]()
    params = initial(model, 0, case.shape.features, case.shape.outputs)
    for contender in study.contenders:
        rounds = result.of(contender.name, case.name)[0].partners.shape[1]
        contender = contender if rounds == contender.rounds else for_rounds(contender, rounds)
        hyper = numbers(contender.candidates[0] | ({"user": case.user} if contender.personal else {}))
        found[contender.name] = training_operations(Setup(contender.make, model), rounds, hyper, params, block)
        if progress is not None:
            progress(len(found), len(study.contenders))
    return found
