"""Images dealt out to agents: the WAFFLE paper's distributions, the files behind them, splits, and a picture."""

import gzip
import importlib
import tarfile

import numpy as np
import pytest

import confrere as cf
from confrere.data import fetch, splits
from confrere.data.fetch import DataNotFound
from confrere.data.idx import IdxFile, IdxSet, idx_arrays, read_idx
from confrere.data.label_lists import by_lists, class_counts
from confrere.data.label_picture import label_counts

digits = importlib.import_module("confrere.data.mnist")
things = importlib.import_module("confrere.data.cifar10")
TEST_ROWS = {"A": 996, "B": 1038, "C": 946}
LABELS = np.arange(2000) % 10


def counts_of(distribution, agents=10, rows=40, seed=0):
    shares = by_lists(LABELS, LABELS, distribution, agents, rows, seed)
    return np.stack([np.bincount(share.train_y, minlength=10) for share in shares])


@pytest.mark.parametrize("distribution", TEST_ROWS)
def test_alice_has_the_published_number_of_test_rows(shared_data, distribution):
    silos = cf.data.mnist(distribution, agents=2, rows=20)
    assert silos.sizes("test")[0] == TEST_ROWS[distribution]
    assert silos.sizes("train") == (20, 20)
    assert (silos.names, silos.kind) == (("Alice", "agent 1"), "artificial")


def test_pixels_are_normalised_and_named(shared_data):
    silos = cf.data.mnist("A", agents=1, rows=2000)
    X = silos["Alice"].rows("train")[0]
    assert X.dtype == np.float32
    assert X.mean() == pytest.approx(0, abs=0.02)
    assert X.std() == pytest.approx(1, abs=0.02)
    assert X.min() == pytest.approx(-0.1307 / 0.3081, abs=1e-6)
    assert silos.feature_names[28 * 3 + 7] == "pixel 3,7"


def test_images_of_a_row_are_those_of_the_file(shared_data):
    images = digits.digits()
    [share] = by_lists(images.train_y, images.test_y, "C", agents=1, rows=10, seed=3)
    silo = cf.data.mnist("C", agents=1, rows=10, seed=3)["Alice"]
    expected = (images.train[share.train[4]].reshape(-1) / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(silo.X[4], expected, atol=1e-5)
    assert silo.y[4] == images.train_y[share.train[4]]


def test_the_lists_of_the_paper_move_to_the_right():
    np.testing.assert_array_equal(counts_of("A"), np.full((10, 10), 4))
    np.testing.assert_array_equal(counts_of("B")[0], [10, 10, 10, 10, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(counts_of("B")[1], [0, 10, 10, 10, 10, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(counts_of("C")[0], [0, 0, 0, 4, 8, 16, 8, 4, 0, 0])
    np.testing.assert_array_equal(counts_of("C", agents=12)[11], np.roll(counts_of("C")[0], 1))


def test_counts_that_do_not_divide_evenly_still_sum_to_the_rows():
    counts = counts_of("C", rows=37)
    np.testing.assert_array_equal(counts.sum(axis=1), 37)
    assert np.abs(counts[0] - 37 * np.array([0, 0, 0, 0.1, 0.2, 0.4, 0.2, 0.1, 0, 0])).max() < 1


def test_no_image_is_used_twice_and_the_seed_decides_which_ones():
    shares = by_lists(LABELS, LABELS, "B", agents=10, rows=100, seed=1)
    rows = np.concatenate([share.train for share in shares])
    assert len(np.unique(rows)) == 1000
    np.testing.assert_array_equal(rows, np.concatenate([s.train for s in by_lists(LABELS, LABELS, "B", 10, 100, 1)]))
    assert set(shares[0].train) != set(by_lists(LABELS, LABELS, "B", 10, 100, seed=2)[0].train)


def test_a_star_permutes_the_labels_of_all_but_alice_in_training_and_in_test():
    plain, starred = (by_lists(LABELS, LABELS, name, agents=4, rows=100, seed=1) for name in ("A", "A*"))
    swaps = []
    for one, other in zip(plain, starred, strict=True):
        np.testing.assert_array_equal(one.train, other.train)
        swap = np.array([other.train_y[one.train_y == k][0] for k in range(10)])
        np.testing.assert_array_equal(other.train_y, swap[one.train_y])
        np.testing.assert_array_equal(other.test_y, swap[one.test_y])
        swaps.append(tuple(swap))
    assert swaps[0] == tuple(range(10))
    assert len(set(swaps)) == 4
    assert all(sorted(swap) == list(range(10)) for swap in swaps)


def test_agents_share_a_class_that_is_short_and_make_up_for_it_elsewhere():
    supply = np.array([5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])  # of MNIST
    counts = class_counts(np.full((10, 10), 0.1), 6000, supply)
    assert (counts.sum(axis=0) <= supply).all()
    assert counts.sum(axis=1).min() >= 5990
    assert set(counts[:, 5]) == {542, 543}
    lists = np.stack([np.roll([0.25] * 4 + [0] * 6, i) for i in range(10)])
    skewed = class_counts(lists, 6000, supply)
    assert (skewed.sum(axis=0) <= supply).all()
    assert skewed.sum(axis=1).max() == 6000
    assert skewed.sum(axis=1).min() > 0.97 * 6000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"distribution": "D"}, r"one of A, B, C, A\*, B\*, C\*, not 'D'"),
        ({"rows": 201}, "at most 200 rows each"),
        ({"agents": 5, "rows": 400, "distribution": "B"}, "at most 233 rows each"),
        ({"rows": 0}, "rows must be a whole number"),
        ({"agents": 1.5}, "agents must be a whole number"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is_possible(arguments, words):
    with pytest.raises(ValueError, match=words):
        by_lists(LABELS, LABELS, **{"distribution": "A", "agents": 10, "rows": 10, **arguments})


def test_so_many_rows_as_the_error_names_are_possible():
    assert {len(share.train) for share in by_lists(LABELS, LABELS, "B", agents=5, rows=233)} == {233}


def test_any_split_deals_images_out_and_test_rows_follow(shared_data):
    silos = cf.data.mnist(splits.shards(5), agents=5, rows=100)
    counts, tests = label_counts(silos), label_counts(silos, "test")
    assert silos.sizes("train") == (100,) * 5
    assert "shards" in silos.origin
    published = np.array([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])
    np.testing.assert_array_equal(tests, np.floor(counts / 100 * published + 1e-9))
    sizes = cf.data.mnist(splits.unequal_sizes(5, ratio=4), agents=5, rows=100).sizes("train")
    assert sum(sizes) == 500
    assert sizes[4] == pytest.approx(4 * sizes[0], abs=4)


def test_splits_that_do_not_fit_are_refused(shared_data):
    with pytest.raises(ValueError, match="makes 4 silos, not 10: give it k=10"):
        cf.data.mnist(splits.iid(4), rows=20)
    with pytest.raises(ValueError, match="distribution with a star"):
        cf.data.mnist(splits.concept_shift(3), agents=3, rows=20)


def test_cifar10_is_read_from_its_pictures(shared_data):
    silos = cf.data.cifar10("B", agents=2, rows=40)
    assert len(silos.feature_names) == 3072
    assert silos.feature_names[:3] == ("pixel 0,0 red", "pixel 0,0 green", "pixel 0,0 blue")
    assert silos.sizes("test") == (1000, 1000)
    assert (silos.label_names or ())[3] == "cat"
    X = silos[0].X
    assert abs(X.mean()) < 0.3
    assert X.std() == pytest.approx(1, abs=0.2)


def records_of(images, labels):
    """The authors' binary form: a label, then the pixels colour by colour."""
    return np.concatenate([labels[:, None], images.transpose(0, 3, 1, 2).reshape(len(images), -1)], axis=1).tobytes()


def test_every_pixel_and_label_of_cifar10_is_the_authors(shared_data):
    """As binary records both halves have the MD5 that the authors published, so no image has another's label."""
    images = things.things()
    train, test = (
        fetch.hashlib.md5(records_of(*half), usedforsecurity=False).hexdigest()
        for half in ((images.train[:10_000], images.train_y[:10_000]), (images.test, images.test_y))
    )
    assert (train, test) == ("5dd7e06a14cb22eb9f671a540d1b7c25", "803d5f7f4d78ea53de84dbe85f74fb6d")


def test_cifar10_is_read_from_its_archive(shared_data, tmp_path):
    images = things.things()
    records = records_of(images.test[:4], images.test_y[:4])
    with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as tar:
        for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
            (tmp_path / name).write_bytes(records)
            tar.add(tmp_path / name, f"cifar-10-batches-bin/{name}")
    (train, train_y), (test, test_y) = things.from_archive(tmp_path / "cifar.tar.gz")
    assert train.shape == (20, 32, 32, 3)
    np.testing.assert_array_equal(test, images.test[:4])
    np.testing.assert_array_equal(train_y[-4:], test_y)


def idx(*values):
    return bytes([0, 0, 8, 1, 0, 0, 0, len(values), *values])


def test_idx_files_are_found_checked_and_refused_if_they_hold_something_else(tmp_path, monkeypatch):
    monkeypatch.delenv("CONFRERE_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(fetch.platformdirs, "user_cache_dir", lambda *a, **k: str(tmp_path / "cache"))
    sums = "5a26f3ee3b5a9b4ac2b1c4b1b5b2b7a1"
    place = tmp_path / "labels.gz"
    place.write_bytes(gzip.compress(idx(3, 1)))
    found = fetch.hashlib.sha256(idx(3, 1)).hexdigest()
    file = IdxFile("labels.gz", found, sums)
    files = IdxSet("nowhere", "http://127.0.0.1:9/", (file,) * 4, installed=(str(tmp_path),), hint="or pray, ")
    np.testing.assert_array_equal(idx_arrays(files)[3], [3, 1])
    with pytest.raises(DataNotFound, match="does not hold what it should"):
        idx_arrays(files._replace(files=(file._replace(content=sums),) * 4))
    with pytest.raises(DataNotFound, match=r"CONFRERE_DATA .* or pray, or allow the download"):
        idx_arrays(files._replace(installed=()))
    place.write_bytes(b"no gzip")
    with pytest.raises(DataNotFound, match="cannot be read"):
        idx_arrays(files)
    with pytest.raises(ValueError, match="no IDX file"):
        read_idx(b"PNG")


def test_the_picture_shows_the_rows_of_every_label(tmp_path):
    silos = cf.Silos.from_arrays([(np.eye(3), [0, 1, 1]), (np.eye(3), [2, 2, 2])], names=["a", "b"])
    np.testing.assert_array_equal(label_counts(silos), [[1, 2, 0], [0, 0, 3]])
    path = cf.data.label_picture(silos, tmp_path / "labels.png")
    assert path.read_bytes()[:4] == b"\x89PNG"
