"""Before round 1: who is told of whom, and what is agreed on when approvals come one after the other."""

import jax
import pytest

from confrere.deploy.conduct import Conduct, Refusal
from confrere.deploy.desk import Desk
from confrere.deploy.exchange import InProcess
from confrere.deploy.policy import read_policy
from confrere.deploy.twin import model_at, simulated
from confrere.testing import gap
from tests.hospitals import SITES, approve, conduct, kept_models, make_sites, study, tables


@pytest.fixture(autouse=True)
def precision_as_before():
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path)


def allow(places, **policies: str) -> None:
    """Add lines to sites' policies."""
    for name, lines in policies.items():
        file = places[name] / "site.toml"
        file.write_text(file.read_text() + f"{lines}\n")


WANT_THREE = dict.fromkeys(("ash", "birch", "cedar"), "min_others = 3")


def test_a_newcomer_that_refuses_to_begin_is_no_company_for_the_others(places, tmp_path):
    asked = study()
    allow(places, **WANT_THREE, elm="min_dilution = 0.9")
    approve({name: places[name] for name in ("ash", "birch", "elm")}, asked)
    with pytest.raises(Refusal):
        conduct(places, asked, tmp_path / "hub").whole()
    read_policy(places["cedar"]).approve(asked)
    run = conduct(places, asked, tmp_path / "hub")
    with pytest.raises(Refusal, match="elm: the others have 75% of all rows, and this site wants 90% at least"):
        run.whole()
    assert run.opening is not None
    assert run.opening.sizes == {}
    assert run.opening.refuses["ash"] == ["2 other sites take part, and this site wants 3 at least"]
    assert not [line for line in run.journal.lines() if line["event"] == "round"]


def test_of_two_latecomers_one_is_told_that_the_other_does_not_begin(places, tmp_path):
    asked = study()
    allow(places, cedar="min_others = 3", elm="min_dilution = 0.9")
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    everybody = dict(run.plainly.answers)
    run.plainly = InProcess({name: everybody[name] for name in ("ash", "birch")})
    allow(places, ash="min_others = 1", birch="min_others = 1")
    lines: list[dict] = []
    run.now = lambda: 100.0 * len(lines)

    def watch(line):
        lines.append(line)
        if line["round"] == 4:
            run.plainly.answers |= {name: everybody[name] for name in ("cedar", "elm")}

    run.whole(watch)
    assert {tuple(line["answered"]) for line in lines} == {("ash", "birch")}
    assert run.opening is not None
    assert run.opening.refuses["cedar"] == ["2 other sites take part, and this site wants 3 at least"]


def test_a_site_that_approves_late_counts_as_if_it_had_approved_at_once(places, tmp_path):
    asked = study("scaffold", more="double = true")
    allow(places, **WANT_THREE)
    approve({name: places[name] for name in ("ash", "birch", "cedar")}, asked)
    with pytest.raises(Refusal):
        conduct(places, asked, tmp_path / "hub").whole()
    read_policy(places["elm"]).approve(asked)
    assert conduct(places, asked, tmp_path / "hub").whole()["event"] == "finished"
    history, models = simulated(asked, tables(places)), kept_models(places, asked)
    assert set(models) == set(SITES)
    assert max(gap(model_at(history, name), saved.model.params) for name, saved in models.items()) < 1e-9


def test_a_site_with_a_class_of_its_own_that_approves_late_is_not_shut_out(places, tmp_path):
    asked = study()
    table = places["elm"] / "patients.csv"
    table.write_text(table.read_text().replace(",yes\n", ",perhaps\n"))
    allow(places, **WANT_THREE)
    approve({name: places[name] for name in ("ash", "birch", "cedar")}, asked)
    with pytest.raises(Refusal):
        conduct(places, asked, tmp_path / "hub").whole()
    read_policy(places["elm"]).approve(asked)
    run = Conduct(asked, tmp_path / "hub", InProcess({name: Desk(place).answer for name, place in places.items()}))
    assert run.whole()["event"] == "finished"
    assert run.opening is not None
    assert run.opening.encoding.label_names == ("no", "perhaps", "yes")
    assert set(run.opening.sizes) == set(SITES)


def test_once_a_round_has_counted_what_was_agreed_stays(places, tmp_path):
    asked = study()
    allow(places, **dict.fromkeys(SITES, "min_others = 1"))
    approve({name: places[name] for name in ("ash", "birch")}, asked)
    lines: list[dict] = []
    first = conduct(places, asked, tmp_path / "hub")
    first.whole(lines.append, stop=lambda: "stopped" if lines else None)
    approve(places, asked)
    again = conduct(places, asked, tmp_path / "hub")
    assert again.whole()["event"] == "finished"
    assert again.opening is not None
    assert first.opening is not None
    assert again.opening.encoding == first.opening.encoding
    assert set(again.opening.sizes) == set(SITES)
