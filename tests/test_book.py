"""The book's exercises: every number that has a reference agrees with it, and the report is as promised."""

import importlib
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

import confrere as cf
from confrere.data.fmi import rows_of
from confrere.reproduce.book import ASSIGNMENTS, figures, fl_algorithms, run_assignments
from confrere.reproduce.book.numbers import Reference, flat
from confrere.reproduce.book.stations import split_stations
from tests.test_cli import confrere

SLOW = {"flavours", "flavours-2025", "graph-learning"}  # mixtures of 207 stations


def module_of(name):
    return importlib.import_module(f"confrere.reproduce.book.{name.replace('-', '_')}")


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in ASSIGNMENTS]
)
def ran(request, shared_data):
    """An assignment's name and what it found, in double precision."""
    import jax

    with jax.enable_x64(True):
        return request.param, run_assignments([request.param])["assignments"][request.param]


def test_every_number_agrees_with_its_reference(ran):
    name, report = ran
    found, references = dict(flat(report)), module_of(name).REFERENCES
    assert set(references) <= set(found)
    wrong = {path: (found[path], r) for path, r in references.items() if not r.verdict(found[path])}
    assert wrong == {}


PAGE = Path(__file__).parents[1] / "docs" / "book.md"
SHOWN = {  # the rows of the page's table: which numbers stand there
    "ml-basics": ["linear.train linear.validation"],
    "gradient-methods": ["descent.train descent.validation"],
    "design-principle": ["k3_alpha1.train k3_alpha1.variation"],
    "fl-algorithms": ["fedgd.train fedgd.validation", "fedsgd.train fedsgd.validation"],
    "flavours": ["coordinates gmm laplacian"],
    "graph-learning": ["mean.train mean.validation", "gmm.train gmm.validation", "gradient.train gradient.validation"],
    "trustworthy": ["deviation.55 mean.55"],
    "ml-basics-2025": ["augmented.train augmented.validation"],
    "ml-to-fl-2025": ["geo.error.0 stat.error.0"],
    "design-principle-2025": ["fedgd.validation"],
    "fl-algorithms-2025": ["fedrelax.validation local.validation"],
    "flavours-2025": [
        "coordinates gmm laplacian",
        "vertical.coupled.validation vertical.alone.validation vertical.central.validation",
    ],
    "trustworthy-2025": ["iterations iterations_explainable"],
}


def numbers_in(cell, count):
    """The numbers of a cell of the page, as they are written; None where there is none."""
    found = [re.search(r"-?[0-9.]+", part) for part in re.sub(r"\(.*?\)", "", cell).split("/")]
    written = [None if one is None else one.group() for one in found]
    return written if len(written) == count else [None] * count


def page_rows(name):
    """The rows of an assignment in the page's table: ours, and the notebook's."""
    rows, here = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            first, _, ours, notebook = (cell.strip() for cell in line.strip("|").split("|"))
            here = first.strip("`") or here
            rows += [(ours, notebook)] if here == name else []
    return rows


def test_the_page_shows_what_is_found_and_what_was_printed(ran):
    name, report = ran
    found, references, rows = dict(flat(report)), module_of(name).REFERENCES, page_rows(name)
    assert len(rows) == len(SHOWN[name])
    for paths, (ours, notebook) in zip(map(str.split, SHOWN[name]), rows, strict=True):
        for path, text, known in zip(
            paths, numbers_in(ours, len(paths)), numbers_in(notebook, len(paths)), strict=True
        ):
            reference = references.get(path, Reference())
            decimals = len(text.partition(".")[2])
            if reference.within is None:
                assert f"{found[path]:.{decimals}f}" == text, path
            else:
                assert found[path] == pytest.approx(float(text), rel=0.02), path
            assert (None if known is None else float(known)) == (
                None if reference.printed is None else round(reference.printed, len((known or "").partition(".")[2]))
            ), path


def test_the_page_counts_the_rows_of_the_present_file(shared_data):
    rows = rows_of("2024")
    assert f"the present one has {len(rows.y):,}" in PAGE.read_text(encoding="utf-8")


def test_an_attack_from_0_ends_more_than_twice_as_far_apart(shared_data, x64, monkeypatch):
    trust = module_of("trustworthy-2025")
    monkeypatch.setattr(trust, "ATTACKS", 2)
    stations = split_stations(trust.SEED)
    network = cf.networks.Network.nearest(stations.coordinates, trust.NEIGHBOURS)
    learnt = trust.descend(cf.networks.GTVMin(network, alpha=trust.ALPHA, X=stations.X, y=stations.y))[1]
    near, far = (trust.attack(stations, network, begin)["gap"] for begin in (learnt, np.zeros_like(learnt)))
    assert near < 0.03
    assert far > 2 * near


def test_a_range_says_why_it_is_one(ran):
    assert all(r.why for r in module_of(ran[0]).REFERENCES.values() if r.within is not None)


def test_a_number_agrees_to_all_digits_that_are_known():
    assert Reference(33.5468).verdict(33.54684)
    assert not Reference(21.0652777154).verdict(21.0652778)
    assert not Reference(0.0896).verdict(0.08966)
    assert Reference(33.5468, 33.728273).verdict(33.7282734)
    assert not Reference(33.5468, 33.728273).verdict(33.728274)
    assert not Reference(33.5468, 33.728273).verdict(33.5468)
    assert Reference(12.17, within=(12, 14), why="ties").verdict(13.9)
    assert not Reference(12.17, within=(12, 14), why="ties").verdict(14.1)
    assert Reference().verdict(1.0) is None


def test_the_report_has_the_promised_shape(shared_data, tmp_path):
    done = confrere("reproduce", "book", "--assignment", "fl-algorithms", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    numbers = report["assignments"]["fl-algorithms"]
    assert set(numbers) == {"fedgd", "fedsgd"}
    assert set(numbers["fedsgd"]) == {"train", "validation", "published"}
    assert numbers["fedgd"]["published"] == pytest.approx(
        [numbers["fedgd"][k] for k in ("train", "validation")], rel=1e-11
    )
    assert numbers["fedsgd"]["published"] == []
    assert report["references"]["fl-algorithms"]["fedgd.train"]["printed"] == 21.0652777154
    assert list(tmp_path.iterdir()) == []


def test_fedsgd_takes_consecutive_batches_and_divides_by_ten(shared_data, x64):
    stations = split_stations(1)
    problem = fl_algorithms.problem_of(stations)
    L, W = problem.network.laplacian().toarray(), np.zeros((problem.n, problem.d))
    for k in range(25):
        g = np.zeros_like(W)
        for i, (X, y) in enumerate(zip(stations.X, stations.y, strict=True)):
            first = 10 * (k % -(-len(y) // 10))
            rows, labels = X[first : first + 10], y[first : first + 10]
            g[i] = 2 / 10 * rows.T @ (rows @ W[i] - labels)
        W = W - 0.1 * (g + 2 * 0.5 * L @ W)
    found = cf.networks.fedsgd(problem, lr=0.1, batch=10, iterations=25, order="cyclic").W
    np.testing.assert_allclose(found, W, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_every_assignment_runs_in_one_command(shared_data, tmp_path):
    done = confrere("reproduce", "book", "--json", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["assignments"]
    assert tuple(found) == ASSIGNMENTS
    assert all(isinstance(value, float) for value in found["flavours"].values())
    assert all({"train", "validation"} <= set(found["graph-learning"][way]) for way in ("mean", "gmm", "gradient"))
    trust = found["trustworthy-2025"]
    assert 0 < trust["iterations_explainable"] < trust["iterations"]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == [
        "book-map.png",
        "book-objective.png",
        "book.html",
    ]
    page = (tmp_path / "here" / "book.html").read_text(encoding="utf-8")
    assert all(f"<h2>{name}</h2>" in page for name in ASSIGNMENTS)
    assert 'src="http' not in page


@pytest.mark.slow
def test_the_map_has_every_station_and_edge_and_one_scale_of_colours(shared_data, x64):
    stations = split_stations(1)
    figure = figures.map_figure(stations)
    places, by_data = figure.axes[:2]
    for axis in (places, by_data):
        points = axis.collections[1]
        np.testing.assert_array_equal(points.get_offsets(), stations.coordinates[:, ::-1])
    assert len(places.collections[0].get_segments()) == len(fl_algorithms.problem_of(stations).network.edges)
    assert places.collections[1].get_clim() == by_data.collections[1].get_clim()
    errors = [abs(v - y.mean()) for v, y in zip(places.collections[1].get_array(), stations.y_validation, strict=True)]
    assert np.median(errors) < 1.5  # personal predictions follow the station's own temperatures
    plt.close(figure)


@pytest.mark.slow
def test_no_algorithm_goes_below_the_minimum_and_all_come_nearer(shared_data, x64):
    for name, above in figures.above_minimum(fl_algorithms.problem_of(split_stations(1))).items():
        assert above.shape == (figures.ITERATIONS,)
        assert above.min() > -1e-9, name
        assert above[-1] < 0.5 * above[0], name


def test_trees_that_are_coupled_predict_better_than_alone(shared_data):
    found = module_of("fl-algorithms-2025").run()
    assert found["fedrelax"]["validation"] < found["local"]["validation"]


def test_an_unknown_assignment_and_missing_data_are_told(tmp_path):
    done = confrere("reproduce", "book", "--assignment", "poetry")
    assert done.returncode == 2
    assert "ml-basics" in done.stderr
    done = confrere("reproduce", "book", "--assignment", "ml-basics", without_data=True)
    assert done.returncode == 3
    assert "fmi_weather/FMI_data.csv" in done.stderr
