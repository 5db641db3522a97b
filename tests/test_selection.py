"""A selection: its ranking, the ways to choose from it, what it says, and what holds for every method."""

import json

import numpy as np
import pytest

import confrere as cf
from confrere.selection import Crossing, Selection
from tests.selection_problems import classes, flip, reordered

NAMES = ("user", "near", "[far]", "middle", "mute")


def made(lower=True, scores=(np.nan, 0.1, 0.9, 0.2, np.nan)) -> Selection:
    values = np.array(scores)
    crossings = (Crossing("near", "a model", 12, 3), Crossing("[far]", "a model", 20, 3))
    prior = np.array([1.0, 1, 1, 1, 0])
    reasons = dict.fromkeys(NAMES[1:], "because")
    return Selection(
        "method", NAMES, 0, values, values - 0.05, values + 0.05, lower, reasons, crossings, "rows", "loss", prior
    )


METHODS = {
    "ndoye": lambda silos, user, **how: cf.selection.ndoye(silos, user, resamples=20, **how),
    "influence": lambda silos, user, **how: cf.selection.influence(silos, user, resamples=20, **how),
    "gradients": lambda silos, user, **how: cf.selection.gradients(silos, user, resamples=0, **how),
    "discrepancy": lambda silos, user, **how: cf.selection.discrepancy(silos, user, resamples=20, **how),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def test_the_ranking_has_the_best_first_and_nobody_without_a_score():
    assert made().ranking == ["near", "middle", "[far]"]
    assert made(lower=False).ranking == ["[far]", "middle", "near"]
    assert made().silent == ("mute",)


def test_equal_scores_come_in_the_order_of_the_names():
    assert made(scores=(np.nan, 0.5, 0.5, 0.5, np.nan)).ranking == ["[far]", "middle", "near"]


def test_choices_keep_whom_they_say():
    assert made().best(1).kept == ("near",)
    assert made().below(0.5).kept == ("near", "middle")
    assert made().drop().kept == ("near", "middle")
    assert made(lower=False).above(0.15).kept == ("[far]", "middle")
    assert made(lower=False).drop().kept == ("[far]",)
    assert made(scores=(np.nan, 0.5, 0.5, 0.5, np.nan)).drop().kept == ("near", "[far]", "middle")
    assert made().best(2).prior.tolist() == [1, 1, 0, 1, 0]


def test_a_threshold_goes_the_way_of_the_method():
    with pytest.raises(ValueError, match=r"lower is better for method: say below\(0.5\)"):
        made().above(0.5)
    with pytest.raises(ValueError, match=r"higher is better for method: say above\(0.5\)"):
        made(lower=False).below(0.5)


def test_the_user_has_the_last_word_about_every_silo():
    chosen = made().best(1).override({"near": "leave", "[far]": True, "mute": "keep"})
    assert chosen.kept == ("[far]", "mute")
    assert chosen.best(2).kept == ("[far]", "middle", "mute")  # decisions by hand outlive another choice
    assert made().kept == ("near", "[far]", "middle")  # and nothing is changed behind anybody's back
    with pytest.raises(ValueError, match="'user' is the user"):
        made().override({"user": "leave"})
    with pytest.raises(KeyError, match="no silo 'nobody'"):
        made().override({"nobody": "keep"})
    with pytest.raises(ValueError, match="silo 'near': say 'keep' or 'leave', not 'maybe'"):
        made().override({"near": "maybe"})


def test_a_graded_prior_is_in_proportion_to_scores_above_zero():
    graded = made(lower=False, scores=(np.nan, 0.2, 0.8, -0.5, np.nan)).graded()
    np.testing.assert_allclose(graded.prior, [1, 0.25, 1, 0, 0])
    assert graded.kept == ("near", "[far]")
    by_hand = {"[far]": "leave", "middle": "keep", "mute": "keep"}
    chosen = made(lower=False, scores=(np.nan, 0.2, 0.8, -0.5, np.nan)).override(by_hand).graded()
    assert chosen.kept == ("near", "middle", "mute")
    np.testing.assert_allclose(chosen.prior, [1, 1, 0, 1, 1])
    for choice in (chosen.best(1), chosen.above(0.5), chosen.drop(), chosen.graded()):
        assert "middle" in choice.kept
        assert "[far]" not in choice.kept
    with pytest.raises(ValueError, match="no shares"):
        made().graded()


def test_what_crossed_is_counted_by_silo():
    assert made().bytes_up.tolist() == [0, 12, 20, 0, 0]
    assert made().bytes_down.tolist() == [0, 3, 3, 0, 0]


def test_json_has_numbers_alone_where_there_are_scores():
    told = json.loads(made().override({"mute": "keep"}).to_json())
    assert told["scores"] == {"near": 0.1, "middle": 0.2, "[far]": 0.9}
    assert told["ranking"] == ["near", "middle", "[far]"]
    assert (told["silent"], told["overridden"]) == (["mute"], {"mute": "keep"})


def test_the_text_shows_names_as_they_are_and_says_why():
    text = str(made().override({"[far]": "leave"}))
    assert "[far]: because" in text
    assert "no (by hand)" in text
    assert "no score" in text
    assert text.index("near") < text.index("[far]")


def test_a_prior_follows_the_names_of_other_silos():
    chosen = made().best(1)
    assert chosen.prior_for(["[far]", "near", "user"]).tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="silo 'new' is not in the selection"):
        chosen.prior_for(["new"])


@every_method
def test_rankings_do_not_depend_on_the_order_of_silos(method):
    silos, order = classes(seed=3), [2, 0, 3, 1]
    one, two = method(silos, "silo 0"), method(reordered(silos, order), "silo 0")
    assert one.ranking == two.ranking
    assert one.kept == tuple(sorted(two.kept))
    np.testing.assert_allclose(two.scores, one.scores[order], atol=1e-6)
    assert np.isnan(one.scores[0])


@every_method
def test_identical_silos_get_equal_scores(method):
    silos = classes((40, 30, 35))
    twins = cf.Silos.from_arrays([(s.X, s.y) for s in (*silos.silos, silos[1])], names=["a", "b", "c", "b again"])
    found = method(twins, "a")
    assert found.score("b") == found.score("b again")
    assert abs(found.ranking.index("b") - found.ranking.index("b again")) == 1


@pytest.mark.parametrize("name", ["ndoye", "influence", "gradients"])
def test_a_silo_with_flipped_labels_comes_last_and_takes_no_part(name):
    silos = flip(classes(seed=1), "silo 2")
    found = METHODS[name](silos, 0)
    assert found.ranking[-1] == "silo 2"
    assert "silo 2" not in found.kept


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ndoye", "influence", "gradients"])
@pytest.mark.parametrize("split", ["age-some", "age-strict"])
def test_a_flipped_silo_of_the_titanic_comes_last(name, split):
    for seed in range(10):
        silos = cf.data.titanic(split, seed=seed)
        for user in (0, 2, 3):
            found = METHODS[name](flip(silos, silos.names[1]), user)
            assert found.ranking[-1] == silos.names[1], (seed, user, found.scores)


@every_method
def test_a_silo_that_never_answers_is_left_out(method):
    silos = classes()
    found = method(silos, 0, silent=["silo 2"])
    without = method(reordered(silos, [0, 1, 3]), 0)
    assert found.silent == ("silo 2",)
    assert "did not answer" in found.reasons["silo 2"]
    assert found.prior[2] == 0
    np.testing.assert_allclose(found.scores[[1, 3]], without.scores[1:], atol=1e-6)


@every_method
def test_a_silo_below_the_minimum_of_rows_sends_nothing_and_is_not_judged(method):
    silos = classes((60, 50, 4, 45))
    found = method(silos, 0)
    assert found.silent == ("silo 2",)
    assert found.reasons["silo 2"] == "it has 4 training rows, fewer than the minimum of 5"
    assert "silo 2" not in {crossing.silo for crossing in found.crossings}
    assert found.prior[2] == 0
    assert method(silos, 0, min_count=4).silent == ()
    assert method(silos, 0, min_count=1000).ranking == []
    with pytest.raises(ValueError, match="min_count must be a whole number above 0"):
        method(silos, 0, min_count=0)


def test_equal_scores_share_a_rank():
    found = made(scores=(np.nan, 0.5, 0.1, 0.5, np.nan))
    assert [found.rank(name) for name in found.ranking] == [(1, False), (2, True), (2, True)]
    assert found.rank("near", among=["near", "middle"]) == (1, True)


@every_method
def test_every_score_has_a_reason_and_its_crossing(method):
    found = method(classes(), 1)
    assert set(found.reasons) == set(found.ranking) == {"silo 0", "silo 2", "silo 3"}
    assert (found.bytes_up[[0, 2, 3]] > 0).all()
    assert found.bytes_up[1] == 0
    json.loads(found.to_json())


@every_method
def test_what_cannot_be_asked_is_refused(method):
    silos = classes()
    with pytest.raises(KeyError, match="no silo 'nobody'"):
        method(silos, "nobody")
    with pytest.raises(ValueError, match="'silo 0' is the user, and cannot be silent"):
        method(silos, 0, silent=["silo 0"])
    with pytest.raises(TypeError, match=r"silent must be a list of names, as in \['silo 1'\]"):
        method(silos, 0, silent="silo 1")
    with pytest.raises(ValueError, match="'silo 0' is alone"):
        method(reordered(silos, [0]), 0)
