"""Question 7 of the report: its words, its table, its map, and what it says where nothing can be compared."""

import re
from dataclasses import replace

import numpy as np

import confrere as cf
from confrere.report.contents import Estimate
from confrere.report.likeness import likeness, map_of
from confrere.report.page import page
from confrere.report.similar import compared, resemblance, similar
from tests.report_helpers import NAMES, hospital_contents
from tests.selection_problems import classes


def test_the_hospital_with_flipped_labels_is_the_least_like_the_others():
    contents = hospital_contents()
    first = contents.hospitals[0].similar
    assert [other.name for other in first.others] == ["Genève", "basel"]
    assert "models" in first.others[-1].differs
    assert first.words[0].startswith("Genève is most like <b>Zürich</b> & co")
    assert any("rests on 45 training rows" in said for said in first.words)
    senses = {sense.measure: sense for sense in first.others[-1].senses}
    assert senses["transfer"].back is not None
    assert senses["models"].back is None
    assert senses["models"].shade >= 2


def test_numbers_on_the_page_are_those_that_were_measured():
    silos = classes((150, 120, 100), flipped=(2,))
    found = compared(silos, 5)
    other = similar(found, 0).others[0]
    j = silos.names.index(other.name)
    for sense in other.senses:
        m = found.measures[sense.measure]
        assert sense.value == Estimate(m.matrix[0, j], m.low[0, j], m.high[0, j])
    text = likeness(resemblance(found), similar(found, 0), "silo 0")
    assert f"{found.matrices['models'][0, j]:.2f} (" in text
    assert 'aria-label="differs"' in text


def test_the_map_shows_every_silo_once_with_its_ellipse():
    contents = hospital_contents()
    drawn = map_of(contents.resemblance, NAMES[1], [NAMES[0], NAMES[2]])
    assert len(re.findall(r'class="mark', drawn)) == 3
    assert len(re.findall(r"<ellipse", drawn)) == 3
    assert "stress" in drawn
    assert map_of(contents.resemblance, NAMES[1], []) == ""


def test_rows_are_called_as_on_the_rest_of_the_page():
    found = compared(classes((30, 30)), 5, people="passengers")
    titles = " ".join(m.title + m.unit for m in found.measures.values())
    assert "passengers" in titles
    assert "patients" not in titles


def test_where_nothing_can_be_compared_the_page_says_why():
    contents = hospital_contents()
    few = compared(classes((30, 3, 3)), 5)
    assert isinstance(few, str)
    assert resemblance(few) is None
    assert similar(few, 0).words == (few,)
    first = replace(contents.hospitals[0], similar=similar(few, 0))
    text = page(replace(contents, hospitals=(first,), resemblance=None, overall=None))
    assert "there is no pair of them" in text
    many = cf.Silos.from_arrays([(np.ones((2, 1)), [0, 1])] * 41)
    assert "too many to compare" in compared(many, 5)


def test_a_silo_of_which_nothing_is_told_is_named():
    found = compared(classes((30, 30, 4)), 5)
    assert any("Of silo 2 nothing is known" in said for said in similar(found, 0).words)
    assert similar(found, 2).words[0].startswith("Not known")
    assert "silo 2" not in resemblance(found).places
    assert "Not known" in likeness(resemblance(found), similar(found, 2), "silo 2")
