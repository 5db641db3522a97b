"""What leaves a silo: nothing but the messages, and the record lists each number and each word in them."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import confrere as cf
from confrere.data import DataWarning
from confrere.data.intake import messages
from confrere.data.intake.messages import Classes, Distance, Layout, Levels, Looks, Moments, Summary, Survey


class Wire:
    """A transport that sends every message as JSON text, keeps the text, and hands on only what it says."""

    def __init__(self):
        self.texts = []

    def gather(self, sent):
        texts = [(type(message), json.dumps(message._asdict())) for message in sent]
        self.texts += texts
        return tuple(rebuilt(kind, json.loads(text)) for kind, text in texts)


def rebuilt(kind, plain):
    if kind is Survey:
        return Survey(**plain)
    if kind in (Looks, Distance):
        return kind(**plain)
    if kind is Classes:
        return Classes(plain["silo"], tuple(plain["names"]))
    levels = {column: Levels(tuple(names), others) for column, (names, others) in plain["levels"].items()}
    if kind is Layout:
        return Layout(plain["silo"], plain["missing"], levels)
    moments = {column: Moments(*values) for column, values in plain["moments"].items()}
    return Summary(plain["silo"], plain["missing"], moments, plain["varies"], levels)


def leaves(kind, plain):
    """How many numbers and words a message holds; names of columns count where they are first said."""
    if kind is Survey:
        return 1 + 2 * len(plain["kinds"]) + 1 + 2 * len(plain["few"])
    if kind is Classes:
        return len(plain["names"])
    if kind in (Looks, Distance):
        return sum(len(answers) for answers in plain.values() if isinstance(answers, dict))
    words = sum(len(names) + 1 for names, _ in plain["levels"].values()) + len(plain["missing"])
    if kind is Layout:
        return words
    numbers = sum(number is not None for values in plain["moments"].values() for number in values)
    return words + numbers + len(plain["varies"])


def rows(seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(60, 12, 90),
            "bp": np.where(rng.random(90) < 0.2, np.nan, rng.normal(130, 15, 90)),
            "cp": rng.choice(["p", "q", "r"], 90),
            "name": [f"patient number {i}" for i in range(90)],
            "ill": rng.integers(0, 2, 90),
            "site": rng.choice(["north", "south"], 90),
        }
    )


def load(scale="shared", **options):
    return cf.Silos.from_table(rows(), label="ill", silo="site", scale=scale, **options)


@pytest.mark.filterwarnings("ignore::confrere.data.DataWarning")
@pytest.mark.parametrize("scale", ["shared", "silo", None])
def test_features_rest_on_the_messages_alone_and_all_of_them_are_recorded(monkeypatch, scale):
    plain = load(scale).split(seed=4)
    wire = Wire()
    monkeypatch.setattr(messages, "gather", wire.gather)
    loaded = load(scale)
    opening = [text for text in wire.texts if text[0] is not Summary]
    wire.texts.clear()
    silos = loaded.split(seed=4)
    for one, two in zip(plain.silos, silos.silos, strict=True):
        np.testing.assert_array_equal(one.X, two.X)
    assert silos.shared == plain.shared
    counted = Counter()
    for kind, text in opening + wire.texts:
        counted[json.loads(text)["silo"]] += leaves(kind, json.loads(text))
    assert {kind for kind, _ in wire.texts} == {Summary}
    recorded = Counter()
    for entry in silos.shared:
        recorded[entry.silo] += entry.count
    assert recorded == counted


@pytest.mark.filterwarnings("ignore::confrere.data.DataWarning")
@pytest.mark.parametrize("scale", ["shared", "silo", None])
def test_no_row_leaves(monkeypatch, scale):
    wire = Wire()
    monkeypatch.setattr(messages, "gather", wire.gather)
    load(scale)
    everything = " ".join(text for _, text in wire.texts)
    assert "patient number" not in everything
    for value in rows()["age"]:
        assert str(value) not in everything


def gaps_and_levels(rows, table):
    """The record of what is said of gaps and levels, the same for all rows and for training rows."""
    return [
        *((f"whether values are missing in {rows} of {name!r}", 1) for name in ("age", "bp", "cp")),
        (f"levels in {rows} of 'cp'", table["cp"].nunique()),
        (f"whether there are rarer levels in {rows} of 'cp'", 1),
    ]


def test_the_record_of_one_silo_in_words():
    with pytest.warns(DataWarning, match="'name'"):
        silos = load()
    table = rows()[rows()["site"] == "north"]
    assert [(e.what, e.count) for e in silos.shared if e.silo == "north"] == [
        ("its name", 1),
        ("names of columns", 4),
        ("kinds of columns", 4),
        ("kind of the label", 1),
        ("names of the classes", 2),
        *gaps_and_levels("all rows", table),
        *((f"whether there are at most five values, all whole numbers, in {name!r}", 1) for name in ("age", "bp")),
        *((f"whether there are five values or more, all 0, in {name!r}", 1) for name in ("age", "bp")),
        ("count, sum and sum of squares of training values of 'age'", 3),
        ("count, sum and sum of squares of training values of 'bp'", 3),
        *gaps_and_levels("training rows", table),
    ]
    assert all(e.why for e in silos.shared)


def test_statistics_sent_are_those_of_the_training_rows(monkeypatch):
    with pytest.warns(DataWarning):
        loaded = load()
    wire = Wire()
    monkeypatch.setattr(messages, "gather", wire.gather)
    silos = loaded.split(test=0.3, seed=1)
    for _, text in wire.texts:
        sent = json.loads(text)
        own = rows()[rows()["site"] == sent["silo"]]["bp"].to_numpy()[silos[sent["silo"]].part == 0]
        known = own[~np.isnan(own)]
        count, total, squares = sent["moments"]["bp"]
        assert count == len(known)
        assert total == pytest.approx(known.sum(), rel=1e-13)
        assert squares + total**2 / count == pytest.approx((known**2).sum(), rel=1e-13)


def test_each_split_shares_anew_and_the_record_says_what_its_own_features_rest_on():
    with pytest.warns(DataWarning):
        silos = load()
    assert len(silos.split(seed=0).shared) == len(silos.shared)


def test_arrays_share_nothing():
    assert cf.Silos.from_arrays([([[0.0], [1.0]], [0, 1])]).shared == ()


def with_a_tiny_silo(last):
    """Two clinics with many rows, and one whose rows are `last`."""
    many = rows().drop(columns="name").astype({"age": object, "bp": object})
    return pd.concat([many, pd.DataFrame([{"site": "tiny", "ill": 1, **row} for row in last])], ignore_index=True)


@pytest.mark.filterwarnings("ignore::confrere.data.DataWarning")
@pytest.mark.parametrize("scale", ["shared", "silo", None])
def test_what_a_tiny_silo_says_does_not_depend_on_its_rows(monkeypatch, scale):
    said = []
    for last in [{"age": 61, "bp": 140.5, "cp": "p"}], [{"age": 0}] * 3 + [{"bp": 1.0, "cp": "new"}]:
        wire = Wire()
        monkeypatch.setattr(messages, "gather", wire.gather)
        options = {"label": "ill", "silo": "site", "scale": scale, "min_level": 5}
        silos = cf.Silos.from_table(with_a_tiny_silo(last), **options)
        texts = [text for _, text in wire.texts if json.loads(text)["silo"] == "tiny"]
        said.append((texts, [entry for entry in silos.shared if entry.silo == "tiny"]))
    assert said[0] == said[1]
    assert [(entry.what, entry.count) for entry in said[0][1]] == [
        ("its name", 1), ("names of columns", 3), ("kinds of columns", 3), ("kind of the label", 1),
        ("names of the classes", 1),
    ]  # fmt: skip


def test_the_common_line_is_made_without_tiny_silos():
    table = with_a_tiny_silo([{"age": 61, "bp": 140.5, "cp": "p"}])
    large = table[table["site"] != "tiny"]
    silos, others = (cf.Silos.from_table(t, label="ill", silo="site", min_level=5) for t in (table, large))
    assert silos.encoding.columns == others.encoding.columns
    age = large["age"].astype(float)
    assert silos["tiny"].X[0, 0] == pytest.approx((61 - age.mean()) / age.std(ddof=0))


def test_a_column_that_no_silo_may_tell_of_is_left_out_or_zero_and_a_note_says_why():
    x = [None] * 8 + [1.0, 2.0, 3.0, 4.0] * 2
    table = pd.DataFrame({"age": range(16), "x": x, "y": [0, 1] * 8, "s": [*"aabb"] * 4})
    with pytest.warns(DataWarning, match="'x' is known in fewer than 5 rows of every silo.*lower min_level"):
        silos = cf.Silos.from_table(table, label="y", silo="s", min_level=5)
    assert silos.feature_names == ("age",)
    dealt = cf.Silos.from_table(table, label="y", silo="s", min_level=4).divide(cf.data.splits.iid(4))
    assert "x" not in dealt.feature_names
    assert any("'x' has no silo of which enough rows know it (min_level)" in note for note in dealt.notes)
    with pytest.raises(ValueError, match="fewer than 9 training rows of every silo"):
        cf.Silos.from_table(table, label="y", silo="s", min_level=9)


def test_a_split_with_too_few_training_rows_to_tell_of_a_column_says_so():
    table = pd.DataFrame(
        {"age": range(20), "x": [1.0, 2.0, None, None] * 5, "y": [0, 1, 1, 0] * 5, "s": [*"aaaaaaaaaabbbbbbbbbb"]}
    )
    silos = cf.Silos.from_table(table, label="y", silo="s", min_level=5).split(test=0.4, seed=0)
    assert "x" in silos.encoding.silent
    assert any("fewer than 5 training rows of each silo know x" in note for note in silos.notes)
    assert not any("training values of 'x'" in entry.what for entry in silos.shared)


def test_what_a_tiny_silo_does_not_tell_must_agree_with_the_others():
    with pytest.raises(ValueError, match="'cp' is categorical in the other silos, but numeric in silo 'tiny'"):
        cf.Silos.from_table(with_a_tiny_silo([{"cp": 3}]), label="ill", silo="site", min_level=5)
