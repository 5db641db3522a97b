"""The numbers on the page about similarity are those that the examples give."""

import numpy as np
import pytest

import confrere as cf


@pytest.fixture(scope="module")
def titanic():
    return cf.insight.similarity(cf.data.titanic("age-some", seed=0))


@pytest.fixture(scope="module")
def hospitals(shared_data):
    return cf.insight.similarity(cf.data.heart_disease())


def test_the_twins_are_nearest_and_form_a_group(titanic):
    features, chance = titanic.matrices["features"], titanic.chance["features"]
    assert (round(features[0, 1], 2), round(chance[0, 1], 2)) == (0.17, 0.22)
    assert (round(features[1, 2], 2), round(features[0, 2], 2)) == (0.84, 0.9)
    combined = titanic.combined.matrix
    assert round(combined[0, 1], 2) == 0.75
    assert np.sort(combined[np.triu_indices(4, 1)])[1] >= 1.6
    assert round(titanic.matrices["outcomes"][0, 1], 3) == 0.089
    assert "outcomes" in titanic.like("0-35 a")[0].differs
    assert titanic.groups().groups == (("0-35 a", "0-35 b"), ("36+",), ("unknown",))


def test_the_bytes_of_the_titanic(titanic):
    plain = cf.insight.similarity(cf.data.titanic("age-some", seed=0), resamples=0)
    mean = {n: (round(m.bytes_up / 4e3, 1), round(m.bytes_down / 4e3, 1)) for n, m in titanic.measures.items()}
    assert mean == {
        "models": (3.1, 0), "gradients": (30.8, 0.8), "transfer": (3.2, 9.3), "influence": (8.0, 1.2),
        "outcomes": (0.6, 0), "features": (5.6, 0), "predictions": (30.8, 7.2),
    }  # fmt: skip
    sent = {n: m.bytes_up // 4 for n, m in plain.measures.items()}
    assert sent == {
        "models": 80, "gradients": 800, "transfer": 120, "influence": 8040, "outcomes": 24, "features": 216,
        "predictions": 800,
    }  # fmt: skip


def test_the_hospitals_are_alike_in_some_senses_and_not_in_others(hospitals):
    names = hospitals.names
    i = {name: names.index(name) for name in names}
    combined = hospitals.combined.matrix
    assert round(combined[i["cleveland"], i["hungary"]], 1) == 2.1 == round(combined[combined > 0].min(), 1)
    assert round(combined[i["hungary"], i["switzerland"]], 1) == 4.4 == round(combined.max(), 1)
    [va] = [other for other in hospitals.like("cleveland") if other.silo == "va"]
    assert set(va.differs) == {"gradients", "outcomes", "features"}
    pair = i["cleveland"], i["va"]
    assert [round(hospitals.matrices[n][pair], 2) for n in ("predictions", "features", "outcomes")] == [
        0.15,
        1.19,
        0.29,
    ]
    T = hospitals.matrices["transfer"]
    assert round(T[i["cleveland"], i["switzerland"]], 2) == 0.97
    assert round(T[i["switzerland"], i["cleveland"]], 2) == 0.11
    found = hospitals.groups()
    assert found.groups == ()
    assert found.considered[0] == ("cleveland", "hungary")
    assert (found.consensus, round(found.chance, 2)) == (1.0, 0.06)


@pytest.mark.slow
def test_twins_of_twenty_splits():
    nearest = grouped = 0
    for seed in range(20):
        found = cf.insight.similarity(cf.data.titanic("age-some", seed=seed), seed=seed)
        one, two = found.names[:2]
        nearest += found.like(one)[0].silo == two and found.like(two)[0].silo == one
        grouped += found.groups().groups[:1] == ((one, two),)
    assert nearest == 20
    assert grouped == 19


@pytest.mark.slow
def test_silos_of_one_law_and_of_two():
    from tests.test_insight_groups import planted

    assert not any(cf.insight.similarity(planted([0] * 5, seed), seed=seed).groups().groups for seed in range(25))
    for seed in range(10):
        found = cf.insight.similarity(planted([0, 0, 0, 1, 1, 1], seed, rows=80), seed=seed)
        assert found.groups().groups == (("s0", "s1", "s2"), ("s3", "s4", "s5"))
