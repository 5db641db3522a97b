"""Heart disease: the counts of the published files, hidden gaps found, and where the files come from."""

import importlib

import numpy as np
import pytest

from confrere.data import DataWarning, fetch, heart_disease
from confrere.data.fetch import DataNotFound
from tests.downloads import files_below, served

source = importlib.import_module("confrere.data.heart_disease")

MISSING = {  # as the description of the files counts them, zeros of chol and trestbps added
    "cleveland": {"slope": 0, "thal": 2, "ca": 4, "chol": 0, "trestbps": 0},
    "hungary": {"trestbps": 1, "chol": 23, "fbs": 8, "restecg": 1, "thalach": 1, "exang": 1, "slope": 190, "ca": 291},
    "switzerland": {"trestbps": 2, "chol": 123, "fbs": 75, "oldpeak": 6, "slope": 17, "ca": 118, "thal": 52},
    "va": {"trestbps": 57, "chol": 56, "fbs": 7, "thalach": 53, "oldpeak": 56, "slope": 102, "ca": 198, "thal": 166},
}


@pytest.fixture(scope="module")
def folder(shared_data):
    return shared_data / "heart_disease"


@pytest.fixture(scope="module")
def silos(folder):
    return heart_disease()


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """No folder of data, an empty cache, and no network."""
    monkeypatch.delenv("CONFRERE_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(fetch.platformdirs, "user_cache_dir", lambda *a, **k: str(tmp_path / "cache"))
    monkeypatch.setattr(source, "URL", "http://127.0.0.1:9/")
    return tmp_path


def column(silos, hospital, name):
    return silos[hospital].X[:, silos.feature_names.index(name)]


def test_four_hospitals_with_the_published_counts(silos):
    assert silos.names == ("cleveland", "hungary", "switzerland", "va")
    assert silos.sizes() == (303, 294, 123, 200)
    assert [int(s.y.sum()) for s in silos.silos] == [139, 106, 115, 149]
    assert silos.label_names == ("absent", "present")
    assert silos.kind == "real"
    assert silos.sizes("test") == (0, 0, 0, 0)


@pytest.mark.parametrize("hospital", MISSING)
def test_gaps_are_those_of_the_description_with_hidden_ones(silos, hospital):
    for name, count in MISSING[hospital].items():
        assert column(silos, hospital, f"{name}=missing").sum() == count, name


def test_numbers_are_standardised_over_all_hospitals_and_codes_are_levels(silos, folder):
    ages, pains = [], []
    for name, _, _ in source.FILES.values():
        rows = [line.split(",") for line in (folder / name).read_text().splitlines()]
        ages += [float(row[0]) for row in rows]
        pains += [float(row[2]) for row in rows]
    expected = (np.array(ages) - np.mean(ages)) / np.std(ages)
    found = np.concatenate([column(silos, name, "age") for name in silos.names])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    for code in (1, 2, 3, 4):
        both = np.concatenate([column(silos, name, f"cp={code}") for name in silos.names])
        np.testing.assert_array_equal(both, np.array(pains) == code)


def test_a_cholesterol_of_zero_counts_in_no_mean(silos):
    known = np.concatenate([column(silos, h, "chol")[column(silos, h, "chol=missing") == 0] for h in silos.names])
    assert len(known) == 920 - 23 - 123 - 56
    assert known.mean() == pytest.approx(0, abs=1e-12)
    assert known.min() > -3.5  # a zero would be at -4.2
    assert not column(silos, "switzerland", "chol").any()


def test_loading_gives_no_warning_but_own_scales_do(folder):
    with pytest.warns(DataWarning, match="mean different things in different silos") as told:
        silos = heart_disease(scale="silo")
    assert len(told) == 1
    assert told[0].filename == __file__
    assert not [e for e in silos.shared if "sum" in e.what]


def test_features_are_the_same_for_every_split(silos):
    for seed in range(10):
        assert silos.split(test=0.5, seed=seed).feature_names == silos.feature_names


def test_with_no_source_at_all_the_message_says_what_to_do(nowhere):
    with pytest.raises(DataNotFound) as problem:
        heart_disease()
    for word in ("cleveland", "CONFRERE_DATA", "heart_disease/processed.cleveland.data", "127.0.0.1:9"):
        assert word in str(problem.value)
    assert files_below(nowhere) == []


def test_a_download_is_checked_and_kept_and_used_again(monkeypatch, nowhere, folder):
    with served((folder / "processed.va.data").read_bytes()) as (url, requests):
        monkeypatch.setattr(source, "URL", url + "?")
        first, second = source.hospital_file("va"), source.hospital_file("va")
    assert first == second
    assert len(requests) == 1
    assert files_below(nowhere) == [first]
    first.write_bytes(b"spoilt")
    with pytest.raises(DataNotFound, match=r"processed\.va\.data is not the expected file \(MD5.*remove it"):
        source.hospital_file("va")


def test_a_wrong_download_is_refused_and_leaves_nothing_behind(monkeypatch, nowhere, folder):
    with served((folder / "processed.va.data").read_bytes()) as (url, _):
        monkeypatch.setattr(source, "URL", url + "?")
        with pytest.raises(DataNotFound, match="not the expected file"):
            source.hospital_file("cleveland")
    assert files_below(nowhere) == []


def test_both_sums_are_checked(folder):
    name, digest, older = source.FILES["va"]
    assert fetch.check_file(folder / name, digest, older) == folder / name
    with pytest.raises(DataNotFound, match="MD5"):
        fetch.check_file(folder / name, digest, "0" * 32)
    with pytest.raises(DataNotFound, match="SHA-256"):
        fetch.check_file(folder / name, "0" * 64, older)


def test_sums_are_those_of_the_description(folder):
    words = (folder / "README.md").read_text(encoding="utf-8")
    for name, digest, older in source.FILES.values():
        assert f"{digest}  {name}" in words
        assert older in words
