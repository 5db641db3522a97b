"""What a site allows binds a hub that wants more: rounds, repeats, runs and bytes of a study."""

import logging
import os
import shutil

import jax
import pytest

from confrere.deploy import desk as desks
from confrere.deploy.desk import Desk
from confrere.deploy.hub import Hub
from confrere.deploy.policy import read_policy
from confrere.deploy.tally import REPEATS, tally_of
from confrere.deploy.tidying import JOB, keep_newest
from tests.hospitals import approve, conduct, make_sites, study


@pytest.fixture(autouse=True)
def precision_as_before():
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path)


def limit(place, policy: str) -> None:
    file = place / "site.toml"
    file.write_text(file.read_text() + f"{policy}\n")


def greedy(places, asked, folder) -> Hub:
    """A hub that has opened the study, and is about to ask what it likes."""
    run = conduct(places, asked, folder)
    run.opening = run.negotiated()
    run.admitted(asked.names)
    return Hub(run.opening.agreed(asked), run.opening.sizes, run.kept_open, run.journal, asked.terms)


def answer_of_elm(hub: Hub) -> tuple[str, str]:
    """Whether elm answers one more request of the round to come, and what it says if it does not."""
    replies, errors, _ = hub.ask("round", ["elm"])
    return ("answered", "") if replies else ("refused", errors["elm"])


def answered_by_elm(run) -> int:
    return sum("elm" in line["answered"] for line in run.journal.lines() if line["event"] == "round")


def test_a_site_answers_one_round_no_more_often_than_it_allows(places, tmp_path):
    asked = study()
    limit(places["elm"], "max_rounds = 10")
    approve(places, asked)
    hub = greedy(places, asked, tmp_path / "hub")
    answers = [answer_of_elm(hub) for _ in range(40)]
    assert [what for what, _ in answers].count("answered") == 1 + REPEATS
    assert answers[-1][1] == "the repeated rounds of this study are more than this site allows"


def test_a_hub_that_alternates_between_rounds_has_its_rounds_counted(places, tmp_path):
    asked = study()
    limit(places["elm"], "max_rounds = 10")
    approve(places, asked)
    hub = greedy(places, asked, tmp_path / "hub")
    said = set()
    for number in range(80):
        hub.held = hub.held._replace(round=1 + number % 2)
        said.add(answer_of_elm(hub))
    tally = tally_of(read_policy(places["elm"]), asked.hash)
    assert (tally.rounds, tally.repeats) == (10, REPEATS)
    assert ("refused", "the rounds of this study are more than this site allows") in said


def test_one_approval_is_for_so_many_rounds_over_all_runs(places, tmp_path):
    asked = study()
    limit(places["elm"], "max_rounds = 14")
    approve(places, asked)
    counts = []
    for number in range(3):
        run = conduct(places, asked, tmp_path / f"hub-{number}")
        run.whole()
        counts.append(answered_by_elm(run))
    assert counts == [10, 3, 0]  # the end of a run is a round, too, and one may come after the last
    assert tally_of(read_policy(places["elm"]), asked.hash).rounds == 15


def test_bytes_are_those_of_all_runs(places, tmp_path):
    asked = study()
    approve(places, asked)
    conduct(places, asked, tmp_path / "hub").whole()
    used = tally_of(read_policy(places["elm"]), asked.hash).bytes
    limit(places["elm"], f"max_bytes = {used + used // 2}")
    run = conduct(places, asked, tmp_path / "again")
    run.whole()
    assert 0 < answered_by_elm(run) < 10
    assert tally_of(read_policy(places["elm"]), asked.hash).bytes <= used + used // 2


def test_what_was_counted_outlives_the_sites_processes_and_what_was_abandoned_is_answered_again(places, tmp_path):
    asked = study()
    limit(places["elm"], "max_rounds = 10")
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    everybody = dict(run.plainly.answers)
    lines: list[dict] = []

    def watch(line):
        lines.append(line)
        if line["event"] == "abandoned":
            run.plainly.answers |= everybody
        if len(lines) == 4:
            run.plainly.answers = {"elm": Desk(places["elm"]).answer}

    run.whole(watch)
    assert [line["event"] for line in lines] == ["round"] * 4 + ["abandoned"] + ["round"] * 6
    assert answered_by_elm(run) == 10
    tally = tally_of(read_policy(places["elm"]), asked.hash)
    assert (tally.rounds, tally.repeats) == (11, 1)


def test_more_is_answered_as_soon_as_the_operator_allows_more(places, tmp_path):
    asked = study()
    approve(places, asked)
    hub = greedy(places, asked, tmp_path / "hub")
    assert answer_of_elm(hub)[0] == "answered"
    limit(places["elm"], "max_bytes = 1")
    assert answer_of_elm(hub) == ("refused", "the bytes of this study are more than this site allows")
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text().replace("max_bytes = 1\n", ""))
    assert answer_of_elm(hub)[0] == "answered"


def test_of_many_runs_the_newest_are_kept_and_every_finished_model(places, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(desks, "RUNS", 2)
    asked = study()
    approve(places, asked)
    state = places["elm"] / "state"
    names = []
    for number in range(5):
        one = conduct(places, asked, tmp_path / f"hub-{number}")
        one.whole()
        names.append(f"{asked.hash[:16]}-{one.run}")
    assert {folder.name for folder in state.iterdir() if folder.is_dir()} == set(names)  # all have models
    for number, name in enumerate(names[1:]):  # as if they had been broken off
        shutil.rmtree(state / name / "model")
        os.utime(state / name, (number, number))
    with caplog.at_level(logging.INFO, logger="confrere.site"):
        first = conduct(places, asked, tmp_path / "hub-0")
        first.whole()
    runs = {folder.name for folder in state.iterdir() if folder.is_dir()}
    assert runs == {names[0], names[3], names[4]}
    assert f"{asked.hash[:16]}-{first.run}" == names[0]
    assert (state / f"tally-{asked.hash[:16]}.json").is_file()


def test_of_many_jobs_the_newest_are_kept_and_nothing_else_is_touched(tmp_path):
    jobs = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(8)]
    for number, name in enumerate(["startup", "local", "transfer", *jobs]):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (number, number))
    assert keep_newest(tmp_path, JOB, 5, in_use=jobs[0]) == jobs[1:3]
    assert {path.name for path in tmp_path.iterdir()} == {"startup", "local", "transfer", jobs[0], *jobs[3:]}
