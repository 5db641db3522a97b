"""The report's question about a choice before training: the scores on it, its words, and what it says without any."""

import confrere as cf
from confrere.report.choosing import about_choice, chosen_before
from tests.report_helpers import NAMES, hospital_contents, hospital_silos, hospital_study


def test_the_page_has_the_scores_of_three_methods_with_their_intervals():
    silos, place = hospital_silos(), 0
    choice = chosen_before(silos, place, hospital_study())
    assert choice.methods == ("ndoye", "influence", "gradients")
    assert {line[0] for line in choice.lines} == set(silos.names[1:])
    for k, method in enumerate(choice.methods, 1):
        found = getattr(cf.selection, method)(silos, place, others=hospital_study().config["others"])
        for line in choice.lines:
            i, rank = silos.names.index(line[0]), found.ranking.index(line[0]) + 1
            ends = f"{found.low[i]:+.4f} to {found.high[i]:+.4f}"
            part = "chosen" if line[0] in found.kept else "not chosen"
            assert line[k] == f"{rank}: {found.scores[i]:+.4f} ({ends}), {part}"


def test_the_others_are_told_their_rank_on_the_page():
    hospital = hospital_contents().hospitals[0]
    [(heading, text)] = about_choice(hospital)
    assert heading == f"Whom might {hospital.name} have chosen before training?"
    assert "By how much they would be missed: " in text
    assert "rank 1 of 2, chosen" in text
    assert len(hospital.choice.told) == len(NAMES) - 1


def test_a_silo_by_itself_is_told_that_there_is_nobody_to_choose_from():
    alone = hospital_silos().only([NAMES[0]])
    choice = chosen_before(alone, 0, hospital_study())
    assert choice.lines == ()
    assert choice.words == (f"silo {NAMES[0]!r} is alone: there is nobody to choose from.",)
