"""Why a silo counted as it did: terms that add up to the recorded weights, against the papers' lines in numpy."""

import json

import numpy as np
import pytest

import confrere as cf

LOGISTIC = cf.models.logistic("zero")


@pytest.fixture(scope="module")
def silos():
    """Four silos of different sizes; the third has its labels the wrong way round."""
    rng = np.random.default_rng(3)

    def one(rows, flipped=False):
        X = rng.normal(size=(rows, 3))
        return X, (X @ [1.0, -1.0, 0.5] + rng.logistic(size=rows) > 0) ^ flipped

    return cf.Silos.from_arrays([one(60), one(25), one(80, True), one(40)], names=["user", "small", "flipped", "like"])


def eroded(silos, rounds=40, active=None, **how):
    recipe = cf.weight_erosion(user="user", lr=0.5, **{"p_d": 0.02, "p_s": 0.3, "batch": 10} | how)
    return cf.simulate(recipe, LOGISTIC, silos, rounds, active=active, metrics=())


def transcribed(history, p_d, p_s, batch, silo, user=0):
    """Equation (5), line by line: weight, and what distance and size took."""
    size, alpha, path = history.sizes[silo], 1.0, []
    for r in range(1, history.rounds + 1):
        d = float(history.distance[r - 1, 0, silo])
        passes = (r - 1) * batch // size
        alpha_new = max(0.0, alpha - (1 + p_s * passes) * p_d * d)
        path.append((alpha_new, -p_d * d, -p_s * passes * p_d * d, alpha_new - alpha + (1 + p_s * passes) * p_d * d))
        alpha = alpha_new
    return np.array(path).T


@pytest.mark.parametrize("silo", ["small", "flipped", "like"])
def test_the_terms_of_erosion_are_those_of_the_paper_and_add_up_to_the_recorded_weights(silos, silo):
    history = eroded(silos)
    found, place = cf.insight.why(history, silo), silos.index(silo)
    weight, by_distance, by_size, cut = transcribed(history, 0.02, 0.3, 10, place)
    table = found.table
    recorded = history.weights[:, 0, place]
    change = sum(table[name].to_numpy() for name in found.terms)
    assert np.abs(1 + np.cumsum(change) - recorded).max() < 1e-6
    assert np.abs(weight - recorded).max() < 1e-6
    assert np.allclose(table["by_distance"], by_distance, atol=1e-9)
    assert np.allclose(table["by_size"], by_size, atol=1e-9)
    assert np.allclose(table["cut_off"], cut, atol=1e-6)
    assert np.allclose(table["before"][1:], table["weight"][:-1], atol=1e-6)


def test_a_weight_that_reached_zero_stays_there_and_says_what_was_cut_off(silos):
    found = cf.insight.why(eroded(silos, p_d=0.1), "flipped")
    gone = np.flatnonzero(found.table["weight"].to_numpy() == 0)
    assert len(gone) > 5
    assert (found.table["cut_off"].to_numpy()[gone[1:]] > 0).all()
    assert "no weight is below 0" in str(found)
    assert "pointed elsewhere" in found.sentence


def test_it_is_told_whether_distance_or_size_did_it(silos):
    assert "not because it is small" in cf.insight.why(eroded(silos, p_s=0.0), "small").sentence
    assert "mostly because it is small" in cf.insight.why(eroded(silos, p_s=5.0), "small").sentence
    both = cf.insight.why(eroded(silos, p_s=0.3), "small")
    assert "and because it is small" in both.sentence
    assert "never worn away" in cf.insight.why(eroded(silos), "user").sentence
    assert "kept its weight" in cf.insight.why(eroded(silos, p_d=0.0), "flipped").sentence


@pytest.mark.parametrize("how", [
    {"passes": "code"}, {"newcomer": "median"}, {"size_prior": 0.5}, {"batch": None},
    {"form": "update", "epochs": 2}, {"form": "update", "steps": 3, "order": "cyclic"},
])  # fmt: skip
def test_every_setting_of_erosion_adds_up_also_with_silos_that_come_and_go(silos, how):
    active = np.random.default_rng(0).random((20, 4)) < 0.7
    active[:4, 1] = False  # joins late
    history = eroded(silos, 20, active, prior={"like": 0.5, "flipped": 0}, **how)
    for silo in silos.names:
        found = cf.insight.why(history, silo)
        start = float(history.hyper["prior"][silos.index(silo)])
        if "size_prior" in how:
            start *= (history.sizes[silos.index(silo)] / history.sizes[0]) ** 0.5
        change = sum(found.table[name].to_numpy() for name in found.terms)
        assert np.abs(start + np.cumsum(change) - history.weights[:, 0, silos.index(silo)]).max() < 1e-6
    assert "left out before training" in cf.insight.why(history, "flipped").sentence
    assert cf.insight.why(history, "small").table["joined"].to_numpy().any()


def test_a_user_without_a_gradient_erodes_everybody_by_distance(silos):
    X = np.zeros((4, 1))
    still = cf.Silos.from_arrays([(X, [0, 1, 0, 1]), (X + 1, [1, 1, 0, 1])], names=["user", "other"])
    history = cf.simulate(cf.weight_erosion(user=0, lr=0.1), LOGISTIC, still, 2, metrics=())
    found = cf.insight.why(history, "other")
    assert found.table["by_distance"].to_list() == [-1.0, 0.0]
    assert found.table["distance"].to_list() == [None, None]
    assert "zero" in found.sentence


def waffle_by_hand(distance, user, rounds, slope):
    """Algorithm 1 (CalcWeights) and equations (2)-(4), line by line, for distances [R, n]: weights [R, n]."""
    n = distance.shape[1]
    before, path = [np.full(n, 1 / n), np.full(n, 1 / n)], []
    for r in range(1, rounds + 1):
        omega = 1 / (1 + np.exp(slope * (2 * r / rounds - 1)))
        d = distance[r - 1].copy()
        others = np.delete(d, user)
        far, near = others.max(), others.min()
        d[user] = near * (1 - (far - near) / far * (1 - omega))
        alpha = np.maximum(0, omega - (d - d[user]) / (far - d[user]))
        alpha = alpha / alpha.sum()
        if r >= 0.95 * rounds:
            alpha = np.eye(n)[user]
        path.append((before[0] + before[1] + alpha) / 3)
        before = [before[1], alpha]
    return np.array(path)


def test_the_terms_of_waffle_add_up_to_the_recorded_weights(silos):
    recipe = cf.waffle(user="user", rounds=40, lr=0.1, batch=10, steps=3)
    history = cf.simulate(recipe, LOGISTIC, silos, 40, metrics=())
    distance = history.distance[:, 0].astype(float) * history.norm[:, :1]
    by_hand = waffle_by_hand(distance, 0, 40, 3.2)
    for place, silo in enumerate(silos.names):
        found = cf.insight.why(history, silo)
        told = sum(found.table[name].to_numpy() for name in found.terms)
        assert np.abs(told - history.weights[:, 0, place]).max() < 1e-6
        assert np.abs(told - by_hand[:, place]).max() < 1e-9
    last = cf.insight.why(history, "user").table
    assert last["by_rule"].to_list()[37:] == [pytest.approx(1 / 3)] * 3
    assert last["by_schedule"].to_list()[37:] == [0.0] * 3
    assert "From round 38 on" in str(cf.insight.why(history, "flipped"))


def test_a_round_that_the_user_of_waffle_missed_has_no_terms_and_other_rounds_add_up(silos):
    active = np.ones((20, 4), bool)
    active[5, 0], active[3:9, 2] = False, False
    history = cf.simulate(cf.waffle(user=0, rounds=20, lr=0.1), LOGISTIC, silos, 20, active=active, metrics=())
    found = cf.insight.why(history, "flipped")
    assert found.table["by_schedule"][5] is None
    there = [r for r in range(20) if r != 5]
    told = sum(found.table[name].to_numpy() for name in found.terms)
    assert np.abs(told - history.weights[:, 0, 2])[there].max() < 1e-6
    raw = cf.waffle(user=0, rounds=20, lr=0.1, distance="raw")
    words = str(cf.insight.why(cf.simulate(raw, LOGISTIC, silos, 20, metrics=()), "like"))
    assert "no terms" in words


@pytest.mark.parametrize(("recipe", "words"), [
    (cf.fedavg(lr=0.1), "counts by its rows (25 of 205)"),
    (cf.fedavg(lr=0.1, weights="uniform"), "counts alike"),
    (cf.local(lr=0.1), "never counts, by design"),
    (cf.fedamp(lr=0.1, pull=0.1, sigma=1.0), "the nearer the models"),
])  # fmt: skip
def test_algorithms_that_do_not_judge_say_by_what_silos_count(silos, recipe, words):
    found = cf.insight.why(cf.simulate(recipe, LOGISTIC, silos, 3, metrics=()), "small", user="user")
    assert words in found.sentence
    assert found.adds_up == ""
    assert "no interval" in str(found)


def test_an_answer_by_evidence_tells_what_its_relevance_rests_on(silos):
    answer = cf.personalise(silos, "user")
    flipped = cf.insight.why(answer, "flipped")
    relevance = answer.relevance["flipped"]
    assert flipped.columns["evidence"] == [pytest.approx(max(1e-6, relevance / (1 - relevance)))]
    assert "unlike it" in flipped.sentence
    assert "flagged" in flipped.sentence
    like = cf.insight.why(answer, "like")
    assert like.columns["share"] == [answer.weights["like"]]
    assert "no interval" in str(like)
    assert "is the user" in cf.insight.why(answer, "user").sentence
    assert json.loads(like.to_json())["silo"] == "like"


def test_what_cannot_be_explained_is_refused_with_what_to_do(silos):
    history = eroded(silos, 3)
    with pytest.raises(KeyError, match="there is no silo 'nobody'"):
        cf.insight.why(history, "nobody")
    with pytest.raises(ValueError, match="no rounds"):
        cf.insight.why(eroded(silos, 0), "like")
    with pytest.raises(ValueError, match="say for whom"):
        cf.insight.why(cf.simulate(cf.fedavg(lr=0.1), LOGISTIC, silos, 2, metrics=()), "like")
    recipe = cf.weight_erosion(user=0, lr=0.5, p_d=0.02)
    without = cf.simulate(recipe, LOGISTIC, silos, 2, metrics=(), record=("weights",))
    with pytest.raises(ValueError, match="did not record distances"):
        cf.insight.why(without, "like")
    elsewhere = cf.simulate(recipe, LOGISTIC, silos, 2, metrics=(), user="like")
    with pytest.raises(ValueError, match="from like's message"):
        cf.insight.why(elsewhere, "small")
    changed = cf.simulate(
        recipe.replace(p_d=0.2),
        LOGISTIC,
        silos,
        6,
        metrics=(),
        resume=cf.simulate(recipe, LOGISTIC, silos, 3, metrics=()),
    )
    with pytest.raises(ValueError, match="resumed with others"):
        cf.insight.why(changed, "flipped")
    with pytest.raises(TypeError, match="what simulate"):
        cf.insight.why({}, "like")
