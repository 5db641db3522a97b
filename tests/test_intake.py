"""Tables become silos: the features are those of an independent transcription, and test rows change nothing."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import confrere as cf
from confrere.data import DataWarning
from confrere.data.intake import Encoding


def hospitals(rows=120, seed=0):
    """A table as hospitals have it: numbers, categories, gaps, a boolean, and three sites of unequal size."""
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 12, rows).round(1)
    age[rng.random(rows) < 0.1] = np.nan
    cp = rng.choice(["typical", "atypical", "none", None], rows, p=[0.4, 0.3, 0.2, 0.1])
    return pd.DataFrame(
        {
            "age": age,
            "visits": rng.integers(0, 50, rows),
            "cp": cp,
            "sex": rng.choice(["f", "m"], rows),
            "smoker": rng.random(rows) < 0.3,
            "ill": rng.choice(["no", "yes"], rows),
            "site": rng.choice(["north", "south", "west"], rows, p=[0.5, 0.3, 0.2]),
        }
    )


def silos_of(table, **options):
    return cf.Silos.from_table(table, **({"label": "ill", "silo": "site"} | options))


def transcription(table, train):
    """The same features by pandas and scikit-learn: statistics of the training rows only."""
    numbers, words = table[["age", "visits"]], table[["cp", "sex", "smoker"]].astype(object)
    words = words.where(words.notna(), None).map(lambda v: str(v).lower() if isinstance(v, bool) else v)
    scaled = StandardScaler().fit(numbers[train]).transform(numbers)
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(words[train])
    columns = dict(zip(hot.get_feature_names_out(), hot.transform(words).T, strict=True))
    return np.stack(
        [
            np.nan_to_num(scaled[:, 0]),
            numbers["age"].isna(),
            scaled[:, 1],
            *(columns[f"cp_{level}"] for level in ("atypical", "none", "typical")),
            words["cp"].isna(),
            columns["sex_m"],
            columns["smoker_true"],
        ],
        axis=1,
    )


NAMES = ("age", "age=missing", "visits", "cp=atypical", "cp=none", "cp=typical", "cp=missing", "sex=m", "smoker=true")


def same(one, two):
    """The same silos to the bit."""
    assert one.names == two.names
    assert one.feature_names == two.feature_names
    assert one.label_names == two.label_names
    assert one.shared == two.shared
    for a, b in zip(one.silos, two.silos, strict=True):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)


# Features


def test_features_are_those_of_pandas_and_scikit_learn():
    table = hospitals()
    silos = silos_of(table)
    expected = transcription(table, np.ones(len(table), bool))
    assert silos.feature_names == NAMES
    assert silos.names == ("north", "south", "west")
    assert silos.label_names == ("no", "yes")
    for silo in silos.silos:
        rows = (table["site"] == silo.name).to_numpy()
        np.testing.assert_allclose(silo.X, expected[rows], rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(silo.y, (table["ill"][rows] == "yes").astype(int))
        assert not silo.part.any()


def test_after_a_split_statistics_come_from_training_rows():
    table = hospitals()
    silos = silos_of(table).split(test=0.4, validation=0.2, seed=3)
    train = np.zeros(len(table), bool)
    for silo in silos.silos:
        train[np.flatnonzero(table["site"] == silo.name)[silo.part == 0]] = True
    assert 40 <= train.sum() <= 56
    expected = transcription(table, train)
    for silo in silos.silos:
        np.testing.assert_allclose(silo.X, expected[(table["site"] == silo.name).to_numpy()], rtol=1e-12, atol=1e-12)


def test_test_rows_change_no_training_feature():
    table = hospitals()
    wild = table.copy()
    parts = silos_of(table).split(test=0.5, seed=1)
    for silo in parts.silos:
        tests = np.flatnonzero(table["site"] == silo.name)[silo.part == 2]
        wild.loc[tests, "age"] = 1e6
        wild.loc[tests, "visits"] = -5000
        wild.loc[tests, "cp"] = "never seen"
        wild.loc[tests, "sex"] = None
    changed = silos_of(wild).with_parts([s.part for s in parts.silos])
    assert set(changed.feature_names) - set(parts.feature_names) == {"cp=never seen", "sex=missing"}
    assert changed.encoding.silent == ("cp=never seen", "sex=missing")
    old = [changed.feature_names.index(name) for name in parts.feature_names]
    new = [j for j in range(len(changed.feature_names)) if j not in old]
    for one, two in zip(parts.silos, changed.silos, strict=True):
        np.testing.assert_array_equal(one.rows("train")[0], two.rows("train")[0][:, old])
        assert not two.X[:, new].any()  # what no training row shows is zero in the test rows too
        assert not two.rows("test")[0][:, old][:, 3:6].any()
        assert (two.rows("test")[0][:, 0] > 1000).all()
    numbers = [[e for e in silos.shared if "training" in e.what] for silos in (parts, changed)]
    assert numbers[0] == numbers[1]


@settings(max_examples=10)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(random):
    table = hospitals(40)
    order = list(range(len(table)))
    random.shuffle(order)
    one, two = silos_of(table), silos_of(table.iloc[order])
    assert one.names == two.names
    for a in one.silos:
        places = [order.index(i) for i in np.flatnonzero(table["site"] == a.name)]
        np.testing.assert_allclose(a.X, two[a.name].X[np.argsort(np.argsort(places))], rtol=1e-11, atol=1e-11)


def test_renaming_silos_reorders_them_and_no_more():
    table = hospitals()
    other = table.assign(site=table["site"].map({"north": "z", "south": "y", "west": "x"}))
    one, two = silos_of(table), silos_of(other)
    assert two.names == ("x", "y", "z")
    for a, b in (("north", "z"), ("south", "y"), ("west", "x")):
        np.testing.assert_allclose(one[a].X, two[b].X, rtol=1e-12, atol=1e-12)


def test_every_way_in_gives_the_same_arrays(tmp_path):
    table = hospitals()
    frame = pl.from_pandas(table)
    table.to_csv(tmp_path / "pandas.csv", index=False)
    frame.write_csv(tmp_path / "polars.csv")
    frame.write_csv(tmp_path / "semicolons.csv", separator=";", include_bom=True)
    frame.write_csv(tmp_path / "tabs.tsv", separator="\t")
    frame.write_parquet(tmp_path / "table.parquet")
    first = silos_of(table)
    for other in (frame, frame.lazy(), frame.to_arrow(), *sorted(tmp_path.iterdir()), str(tmp_path / "polars.csv")):
        same(first, silos_of(other))
    same(first, silos_of(table.convert_dtypes()))
    same(first, silos_of(table.astype({"cp": "category", "sex": object})))


def test_columns_may_be_called_by_numbers():
    table = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: ["f", "m", "m"], 2: ["no", "yes", "no"]})
    silos = cf.Silos.from_table(table, label="2", silo=None)
    assert silos.feature_names == ("0", "1=m")


def test_a_folder_gives_what_the_table_gives(tmp_path):
    table = hospitals()
    for name, rows in table.groupby("site"):
        rows.drop(columns="site").to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / ".hidden.csv").write_text("not,a\ntable")
    (tmp_path / "README.txt").write_text("about")
    (tmp_path / "older").mkdir()
    silos = cf.Silos.from_folder(tmp_path, label="ill")
    same(silos, silos_of(table))
    assert any("README.txt" in note for note in silos.notes)


def test_the_input_is_not_changed():
    table = hospitals()
    before = table.copy(deep=True)
    silos_of(table, missing={"visits": [0]}, categorical=["visits"]).split()
    pd.testing.assert_frame_equal(table, before)


# Missing values, and columns that a silo does not have


def test_hidden_missing_values_are_found_in_numbers_and_in_text():
    table = pl.DataFrame(
        {"chol": [0, 200, 300, 0], "bp": ["120", "unknown", "?", "130"], "y": [0, 1, 0, 1], "s": ["a", "a", "b", "b"]}
    )
    silos = silos_of(table, label="y", silo="s", missing={"chol": 0, "bp": ["unknown"]})
    assert silos.feature_names == ("chol", "chol=missing", "bp", "bp=missing")
    both = np.concatenate([s.X for s in silos.silos])
    np.testing.assert_allclose(both[:, 0], [0, -1, 1, 0])
    np.testing.assert_array_equal(both[:, 1], [1, 0, 0, 1])
    np.testing.assert_allclose(both[:, 2], [-1, 0, 0, 1])
    np.testing.assert_array_equal(both[:, 3], [0, 1, 1, 0])


def test_a_column_that_a_silo_lacks_is_filled_indicated_and_noted(tmp_path):
    (tmp_path / "a.csv").write_text("age,chol,kind,y\n40,200,x,0\n60,300,z,1\n")
    (tmp_path / "b.csv").write_text("y,age\n0,50\n1,70\n")
    silos = cf.Silos.from_folder(tmp_path, label="y", categorical="kind")
    assert silos.feature_names == ("age", "chol", "chol=missing", "kind=z", "kind=missing")
    np.testing.assert_allclose(silos["a"].X[:, 1:], [[-1, 0, 0, 0], [1, 0, 1, 0]])
    np.testing.assert_allclose(silos["b"].X[:, 1:], [[0, 1, 0, 1], [0, 1, 0, 1]])
    assert any("silo 'b' lacks the column(s) 'chol', 'kind'" in note for note in silos.notes)


def test_an_indicator_without_a_missing_training_value_is_zero():
    table = pl.DataFrame({"x": [1.0, 2.0, 3.0, None], "y": [0, 1, 0, 1], "s": ["a", "a", "b", "b"]})
    silos = silos_of(table, label="y", silo="s")
    assert silos.feature_names == ("x", "x=missing")
    later = silos.with_parts([np.array([0, 0]), np.array([0, 2])])
    assert later.feature_names == ("x", "x=missing")
    np.testing.assert_array_equal(later["b"].X[1], [0, 0])
    assert later.encoding.silent == ("x=missing",)


# Scales


def test_without_scale_numbers_stay_and_gaps_get_the_common_mean():
    table = pl.DataFrame({"x": [1.0, 2.0, 6.0, None], "y": [0, 1, 0, 1], "s": ["a", "a", "b", "b"]})
    silos = silos_of(table, label="y", silo="s", scale=None)
    np.testing.assert_allclose(np.concatenate([s.X[:, 0] for s in silos.silos]), [1, 2, 6, 3])
    assert {e.what for e in silos.shared if "'x'" in e.what} == {
        "whether values are missing in all rows of 'x'",
        "whether values are missing in training rows of 'x'",
        "whether there are at most five values, all whole numbers, in 'x'",
        "whether there are more than two values in 'x'",
        "whether there are five values or more, all 0, in 'x'",
        "count and sum of training values of 'x'",
        "whether training values differ in 'x'",
    }


def test_silo_scale_standardises_each_silo_alone_and_says_what_that_means():
    table = hospitals()
    with pytest.warns(DataWarning, match="mean different things in different silos"):
        silos = silos_of(table, scale="silo")
    for silo in silos.silos:
        own = table[table["site"] == silo.name][["age", "visits"]]
        expected = np.nan_to_num(StandardScaler().fit_transform(own))
        np.testing.assert_allclose(silo.X[:, [0, 2]], expected, rtol=1e-12, atol=1e-12)
    assert not [e for e in silos.shared if "sum" in e.what or "count" in e.what]


@pytest.mark.parametrize("shift", [0.0, 1e9, -1e12])
def test_large_numbers_that_vary_little_keep_their_digits(shift):
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=300) * 1024) / 1024
    table = pd.DataFrame({"x": shift + x, "y": rng.integers(0, 2, 300), "s": rng.choice(["a", "b"], 300)})
    silos = silos_of(table, label="y", silo="s")
    expected = (x - x.mean()) / x.std()
    for silo in silos.silos:
        np.testing.assert_allclose(silo.X[:, 0], expected[(table["s"] == silo.name).to_numpy()], atol=2e-4)


def test_a_constant_is_seen_whatever_its_size_and_rounding():
    table = pd.DataFrame({"big": 1e9 + 0.1, "tenth": 0.1, "x": range(10), "y": [0, 1] * 5, "s": list("aaabbbbbbb")})
    with pytest.warns(DataWarning, match="has the same value in all rows") as told:
        silos = silos_of(table, label="y", silo="s")
    assert silos.feature_names == ("x",)
    assert [str(w.message).split("'")[1] for w in told] == ["big", "tenth"]
    assert all(w.filename == __file__ for w in told)


def test_a_column_that_differs_only_between_silos_is_no_constant():
    table = pd.DataFrame({"x": [1e9, 1e9, 1e9 + 1, 1e9 + 1], "y": [0, 1, 0, 1], "s": list("aabb")})
    silos = silos_of(table, label="y", silo="s")
    np.testing.assert_array_equal(np.concatenate([s.X[:, 0] for s in silos.silos]), [-1, -1, 1, 1])


# Levels


def test_codes_are_levels_when_they_are_named_so_however_they_are_written(tmp_path):
    (tmp_path / "a.csv").write_text("cp,y\n1.0,0\n2.0,1\n10.0,1\n")
    (tmp_path / "b.csv").write_text("cp,y\n1,0\n2,1\n,0\n")
    silos = cf.Silos.from_folder(tmp_path, label="y", categorical="cp")
    assert silos.feature_names == ("cp=1", "cp=2", "cp=10", "cp=missing")
    np.testing.assert_array_equal(silos["a"].X, np.eye(4)[:3])
    np.testing.assert_array_equal(silos["b"].X, np.eye(4)[[0, 1, 3]])


def test_rare_levels_are_not_named_but_put_together():
    table = pl.DataFrame(
        {"k": [*"ppqqr", *"pprrr", *"ppppz"], "y": [0, 1, 0, 1, 0] * 3, "s": [*"aaaaa", *"bbbbb", *"ccccc"]}
    )
    silos = silos_of(table, label="y", silo="s", min_level=2)
    assert silos.feature_names == ("k=p", "k=q", "k=r", "k=other")
    np.testing.assert_array_equal(silos["a"].X[4], [0, 0, 1, 0])  # rare in a, but named by b
    np.testing.assert_array_equal(silos["c"].X[4], [0, 0, 0, 1])
    words = json.dumps([m for m in silos.shared if m.silo == "c"])
    assert "z" not in words


def test_levels_called_missing_or_other_keep_their_names():
    table = pl.DataFrame({"k": ["missing", "other", None, "a"] * 2, "y": [0, 1] * 4, "s": ["a"] * 8})
    silos = silos_of(table, label="y", silo="s", min_level=1)
    assert silos.feature_names == ("k=a", "k=missing", "k=other", "k=missing value")


def test_a_gap_that_only_test_rows_have_is_refused_with_what_to_do():
    rows = pl.DataFrame({"x": [1.0, 2.0, 4.0, None], "z": [1.0, 5.0, 2.0, 3.0], "y": [0, 1, 0, 1]})
    silos = cf.Silos.from_table(rows, label="y", silo=None).source.encode([np.array([0, 0, 0, 1])])
    with pytest.raises(ValueError, match="fill it in, or leave the row out") as told:
        silos.encoding.transform(rows, misfits="refuse")
    assert "column 'x', row 3" in str(told.value)
    assert "set aside for testing lack it: trained on all rows, with --test 0" in str(told.value)
    with pytest.raises(ValueError, match=r"column 'z', row 0.*fill it in, or leave the row out$"):
        silos.encoding.transform(rows[:1].with_columns(z=pl.lit(None, float)), misfits="refuse")


def test_a_category_with_gaps_and_one_level_is_its_indicator():
    table = pl.DataFrame({"k": ["yes", None, "yes", "yes"], "x": [1, 2, 3, 5], "y": [0, 1, 0, 1], "s": [*"aabb"]})
    with pytest.warns(DataWarning, match="only k=missing is kept"):
        silos = silos_of(table, label="y", silo="s")
    assert silos.feature_names == ("k=missing", "x")
    np.testing.assert_array_equal(silos["a"].X[:, 0], [0, 1])


@given(st.integers(0, 10_000), st.floats(0.2, 0.9))
@settings(max_examples=10)
def test_every_split_has_the_same_features_and_zeros_where_training_rows_show_nothing(seed, test):
    silos = silos_of(hospitals(30))
    later = silos.split(test=test, seed=seed)
    assert later.feature_names == silos.feature_names
    X = np.concatenate([s.X for s in later.silos])
    train = np.concatenate([s.rows("train")[0] for s in later.silos])
    shown = np.array([name not in later.encoding.silent for name in later.feature_names])
    assert not X[:, ~shown].any()
    assert np.abs(train[:, shown]).max(0).all()


# Labels


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0, 1, 1, 0], ("0", "1")),
        ([1.0, 2.0, 10.0, 2.0], ("1", "2", "10")),
        ([True, False, True, True], ("false", "true")),
        (["b", "a", "c", "a"], ("a", "b", "c")),
        ([0.5, 1.0, 2.0, 3.0], None),
    ],
)
def test_the_task_is_guessed_from_the_label(values, classes):
    silos = silos_of(pl.DataFrame({"x": [1, 2, 3, 5], "y": values, "s": [*"aabb"]}), label="y", silo="s")
    assert silos.label_names == classes
    y = np.concatenate([s.y for s in silos.silos])
    if classes is None:
        np.testing.assert_array_equal(y, values)
    else:
        assert [classes[i] for i in y] == [str(v).lower().removesuffix(".0") for v in values]


def test_many_whole_numbers_in_one_silo_make_a_regression_in_all_and_no_label_leaves():
    table = pl.DataFrame({"x": range(30), "y": [*range(27), 1, 2, 3], "s": ["a"] * 27 + ["b"] * 3}).sample(
        fraction=1, shuffle=True, seed=0
    )
    silos = silos_of(table, label="y", silo="s")
    assert silos.label_names is None
    assert not [e for e in silos.shared if "class" in e.what]
    assert silos_of(table, label="y", silo="s", task="classification").classes() == 27


def test_the_user_may_say_which_task_it_is():
    table = pl.DataFrame({"x": [1, 2, 3, 5], "y": ["0", "1", "0", "1"], "s": [*"aabb"]})
    assert silos_of(table, label="y", silo="s", task="regression").label_names is None
    table = table.with_columns(y=pl.Series([0.5, 1.5, 0.5, 1.5]))
    assert silos_of(table, label="y", silo="s", task="classification").label_names == ("0.5", "1.5")


# The encoding, on new rows


def test_new_rows_are_encoded_as_the_old_ones_also_after_a_detour_through_json():
    table = hospitals()
    silos = silos_of(table, missing={"visits": np.array([0, 49])}).split(seed=2)
    encoding = Encoding.from_dict(json.loads(json.dumps(silos.encoding.to_dict())))
    assert encoding == silos.encoding
    for silo in silos.silos:
        rows = table[table["site"] == silo.name]
        np.testing.assert_array_equal(encoding.transform(rows.drop(columns=["ill", "site"])), silo.X)


def test_new_rows_without_a_column_are_refused_by_name():
    encoding = silos_of(hospitals()).encoding
    with pytest.raises(ValueError, match=r"lacks the column\(s\) 'visits'; did you mean 'visit'\?"):
        encoding.transform(hospitals().rename(columns={"visits": "visit"}))


def test_a_new_cell_that_is_no_number_is_refused_by_name():
    encoding = silos_of(hospitals()).encoding
    rows = hospitals(5).astype({"age": object})
    rows.loc[3, "age"] = "old"
    with pytest.raises(ValueError, match=r"column 'age', row 3 \(counted from 0\): 'old' is no number"):
        encoding.transform(rows)


def test_own_scales_need_the_silo_and_can_be_kept_apart():
    with pytest.warns(DataWarning):
        silos = silos_of(hospitals(), scale="silo")
    rows = hospitals()[hospitals()["site"] == "west"]
    with pytest.raises(ValueError, match="say whose rows these are: silo='north' or 'south' or 'west'"):
        silos.encoding.transform(rows)
    west = silos.encoding.for_silo("west")
    np.testing.assert_array_equal(west.transform(rows, silo="west"), silos["west"].X)
    assert "north" not in json.dumps(west.to_dict())


def test_a_silo_that_never_had_a_column_needs_none_later(tmp_path):
    (tmp_path / "a.csv").write_text("age,chol,y\n40,200,0\n60,300,1\n")
    (tmp_path / "b.csv").write_text("age,y\n50,0\n70,1\n")
    encoding = cf.Silos.from_folder(tmp_path, label="y").encoding
    new = pl.DataFrame({"age": [55.0]})
    np.testing.assert_array_equal(encoding.transform(new, silo="b"), [[0, 0, 1]])
    with pytest.raises(ValueError, match="lacks the column"):
        encoding.transform(new, silo="a")


def test_another_format_is_refused():
    with pytest.raises(ValueError, match="no encoding of format 1"):
        Encoding.from_dict({"format": 7})


# Dealing the rows out anew


def test_the_pool_has_all_rows_as_recorded():
    table = hospitals()
    silos = silos_of(table)
    pool = silos.source.pool()
    order = np.argsort(table["site"], kind="stable")
    assert list(pool.columns) == ["age", "visits", "cp", "sex", "smoker"]
    np.testing.assert_array_equal(pool.columns["age"], table["age"].iloc[order])
    assert pool.columns["cp"].tolist() == [
        None if v is None else v for v in hospitals()["cp"].astype(object).where(table["cp"].notna(), None).iloc[order]
    ]
    np.testing.assert_array_equal(pool.y, (table["ill"].iloc[order] == "yes").astype(int))


def test_dealt_rows_are_the_rows_of_the_pool_in_other_silos():
    from confrere.data.source import Hand

    source = silos_of(hospitals()).source
    whole = np.concatenate([s.X for s in source.all_for_training().silos])
    gone = np.zeros((50, 5), bool)
    gone[:, 1] = True
    hands = [Hand("p", np.arange(70)), Hand("q", np.arange(70, 120), y=np.ones(50, int))]
    dealt = source.deal(hands).all_for_training()
    assert dealt.names == ("p", "q")
    np.testing.assert_allclose(np.concatenate([s.X for s in dealt.silos]), whole, atol=1e-12)
    assert dealt["q"].y.all()
    assert {e.silo for e in dealt.shared} == {"p", "q"}
    fewer = source.deal([hands[0], hands[1]._replace(gone=gone)]).all_for_training()
    assert fewer.feature_names == (*NAMES[:3], "visits=missing", *NAMES[3:])
    assert fewer["q"].X[:, 3].all()
    assert not fewer["q"].X[:, 2].any()


def test_a_column_without_a_name_is_named_after_its_place(tmp_path):
    rows = "".join(f"{i * 11 % 7},{i * 7 % 5},{i % 2},{'ab'[i % 3 > 0]}\n" for i in range(30))
    (tmp_path / "p.csv").write_text(",age,ill,h\n" + rows)
    silos = cf.Silos.from_table(tmp_path / "p.csv", label="ill", silo="h")
    assert silos.feature_names == ("column 1", "age")
