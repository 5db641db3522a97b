"""Hub and sites over bytes: the simulator's models, whoever is absent and whatever stops in the middle."""

import errno
import json
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.core import Block
from confrere.deploy import store as stores
from confrere.deploy.exchange import InProcess
from confrere.deploy.hub import Abandoned
from confrere.deploy.site import own_block
from confrere.deploy.store import KEPT
from tests.deployed import FEDAVG, NAMES, Attendance, attendance, case_of, furthest
from tests.helpers import ALGORITHMS

ROUNDS = 10
QUICK = ("fedavg", "weight-erosion", "waffle", "local-batches", "gtv-gd", "fedfomo")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ALGORITHMS]
)
def test_hub_and_sites_make_the_simulators_models(name, tmp_path, x64):
    row = ALGORITHMS[name]
    case = case_of(row.make([0, 1, 2, 3]), None if row.problem is None else row.problem())
    active = attendance(ROUNDS)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, active))
    assert hub.run(ROUNDS)
    hub.finish()
    assert furthest(case, sites, active) < 1e-9


def test_a_site_needs_no_padding(tmp_path, x64):
    case = case_of(FEDAVG)
    active = np.ones((ROUNDS, len(NAMES)), bool)
    sites = case.sites(tmp_path)
    for place, site in enumerate(sites.values()):
        size = int(case.data.size[place])
        site.own = own_block(np.asarray(case.data.X[place, :size]), np.asarray(case.data.y[place, :size]), place, True)
    hub = case.hub(tmp_path, Attendance(sites, active))
    hub.run(ROUNDS)
    hub.finish()
    assert furthest(case, sites, active) < 1e-9


def test_in_single_precision_they_agree_as_well_as_it_allows(tmp_path):
    case = case_of(FEDAVG)
    active = attendance(ROUNDS)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, active))
    hub.run(ROUNDS)
    hub.finish()
    assert furthest(case, sites, active) < 1e-5


def test_training_alone_sends_no_number_but_that_it_was_done(tmp_path):
    case = case_of(cf.local(lr=0.2))
    spec = case.agreed.message_spec()
    assert [leaf.shape for leaf in jax.tree.leaves(spec)] == [()]
    assert case.agreed.inbox_spec(0).shared == {}


def test_a_listener_is_asked_for_nothing_and_alone_receives_what_is_its_own(tmp_path):
    case = case_of(cf.evidence(user=1, candidates=["pair"]))
    agreed = case.agreed
    assert agreed.listener == NAMES[1]
    assert set(agreed.inbox_spec(1).shared) == {"x", "table", "pool"}
    assert set(agreed.inbox_spec(0).shared) == {"x"}
    asked = case.hub(tmp_path, InProcess({})).asked()
    assert asked == [name for name in NAMES if name != NAMES[1]]


def test_a_round_below_its_minimum_is_abandoned_and_changes_nothing(tmp_path):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    here = np.ones((3, len(NAMES)), bool)
    here[1, :3] = False
    hub = case.hub(tmp_path, Attendance(sites, here), minimum=0.5)
    first, second, third = hub.one_round(), hub.one_round(), hub.one_round()
    assert [line["event"] for line in (first, second, third)] == ["round", "abandoned", "round"]
    assert second["hash"] == first["hash"] != third["hash"]
    assert (second["round"], third["round"]) == (2, 2)
    assert second["why"] == "1 of 4 answered, fewer than 2"


def test_an_abandoned_round_leaves_no_trace_in_the_models(tmp_path, x64):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    here = np.ones((ROUNDS + 2, len(NAMES)), bool)
    here[[3, 7], 1:] = False  # these two calls are abandoned, and asked again
    hub = case.hub(tmp_path, Attendance(sites, here), minimum=0.5)
    hub.run(ROUNDS)
    hub.finish()
    assert furthest(case, sites, np.ones((ROUNDS, len(NAMES)), bool)) < 1e-9


def test_a_run_that_nobody_answers_is_given_up_with_a_reason(tmp_path):
    hub = case_of(FEDAVG).hub(tmp_path, InProcess({}), attempts=3)
    with pytest.raises(Abandoned, match="round 1 was abandoned 3 times in a row: 0 of 4 answered, fewer than 1"):
        hub.run(ROUNDS)


def test_a_hub_and_sites_that_stop_anywhere_end_as_if_they_had_not(tmp_path, x64):
    case = case_of(cf.scaffold(lr=0.2, batch=4))
    rng = np.random.default_rng(0)
    sites = case.sites(tmp_path)
    everybody = np.ones((ROUNDS, len(NAMES)), bool)
    hub = case.hub(tmp_path, Attendance(sites, everybody))
    while hub.held.round <= ROUNDS:
        fate = rng.integers(4)
        if fate == 0:  # the hub stops after sites have answered, before anything is kept
            with pytest.raises(KeyboardInterrupt):
                stopped_in_the_middle(hub)
            hub = case.hub(tmp_path, Attendance(sites, everybody))
        elif fate == 1:  # a site starts anew
            name = str(rng.choice(NAMES))
            sites[name] = case.site(name, tmp_path)
        elif fate == 2:  # the hub starts anew
            hub = case.hub(tmp_path, Attendance(sites, everybody))
        else:
            assert hub.one_round()["event"] == "round"
    hub.finish()
    assert furthest(case, sites, everybody) < 1e-9
    rounds = [line["round"] for line in hub.journal.lines() if line["event"] == "round"]
    assert rounds == list(range(1, ROUNDS + 1))  # none twice
    assert any(line["event"] == "resumed" for line in hub.journal.lines())


def stopped_in_the_middle(hub) -> None:
    """A round whose answers arrive, and then the hub is no more."""

    def stop(*_):
        raise KeyboardInterrupt

    hub.mix = stop
    hub.one_round()


def test_a_line_that_did_not_reach_the_disk_is_written_when_the_hub_comes_back(tmp_path):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, np.ones((4, 4), bool)))
    hub.one_round()
    hub.one_round()
    path = hub.journal.folder / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-30])  # the last line was cut off
    again = case.hub(tmp_path, Attendance(sites, np.ones((4, 4), bool)))
    assert again.held.round == 3
    assert again.held.digest == hub.held.digest
    assert [line["round"] for line in again.journal.lines() if line["event"] == "round"] == [1, 2]


def test_private_states_are_few_and_bounded(tmp_path):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, np.ones((12, 4), bool)))
    hub.run(12)
    assert all(len(site.store.rounds()) == KEPT for site in sites.values())
    assert sites["ash"].store.rounds() == [10, 11, 12]


def test_the_state_that_counts_is_kept_however_many_rounds_did_not(tmp_path):
    case = case_of(cf.scaffold(lr=0.2, batch=4))
    site = case.site("ash", tmp_path)
    hub = case.hub(tmp_path, InProcess({"ash": site.answer}))
    hub.one_round()
    kept = hub.held.counted
    for number in range(2, 9):  # its answers arrive too late, round after round
        hub.held = hub.held._replace(round=number, counted=kept)
        site.answer(hub_request(hub, "ash"))
    assert 1 in site.store.rounds()
    assert len(site.store.rounds()) == KEPT + 1


def hub_request(hub, name: str) -> bytes:
    hub.sequence += 1
    return hub.requests("round", [name])[name]


def test_a_site_whose_state_is_lost_says_so_and_takes_no_part(tmp_path):
    case = case_of(cf.scaffold(lr=0.2, batch=4))
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, np.ones((4, 4), bool)))
    hub.one_round()
    for file in sites["elm"].store.place.iterdir():
        file.unlink()
    line = hub.one_round()
    assert line["answered"] == ["ash", "birch", "cedar"]
    assert "site 'elm' has no state of round 1" in line["errors"]["elm"]
    assert "restore" in line["errors"]["elm"]


def test_a_full_disk_at_a_site_costs_it_the_round_and_nothing_else(tmp_path, monkeypatch, x64):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    active = np.ones((3, 4), bool)
    active[1, 3] = False
    hub = case.hub(tmp_path, Attendance(sites, np.ones((3, 4), bool)))
    hub.one_round()
    write = stores.write_whole

    def full(path, content):
        if "elm" in path.parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, content)

    monkeypatch.setattr(stores, "write_whole", full)
    assert "No space left" in hub.one_round()["errors"]["elm"]
    monkeypatch.undo()
    hub.one_round()
    hub.finish()
    assert furthest(case, sites, active) < 1e-9


def test_a_full_disk_at_the_hub_abandons_the_round(tmp_path, monkeypatch, x64):
    from confrere.deploy import journal

    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, np.ones((4, 4), bool)))
    first = hub.one_round()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(journal, "write_whole", full)
    second = hub.one_round()
    monkeypatch.undo()
    assert (second["event"], second["round"], second["hash"]) == ("abandoned", 2, first["hash"])
    assert "No space left" in second["why"]
    hub.run(3)
    hub.finish()
    assert furthest(case, sites, np.ones((3, 4), bool)) < 1e-9


def test_a_site_that_lets_the_deadline_pass_is_asked_more_and_more_rarely(tmp_path):
    from confrere.deploy.exchange import TIMEOUT

    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    asked: list[bool] = []

    def exchange(requests, deadline, enough=None):
        asked.append("elm" in requests)
        replies = {name: sites[name].answer(request) for name, request in requests.items() if name != "elm"}
        return replies, {"elm": TIMEOUT} if "elm" in requests else {}

    hub = case.hub(tmp_path, exchange)
    for _ in range(12):
        hub.one_round()
    assert asked == [True, False, True, False, False, True, False, False, False, False, True, False]


def test_enough_answers_end_a_round(tmp_path):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, InProcess({name: site.answer for name, site in sites.items()}), goal=2)
    line = hub.one_round()
    assert len(line["answered"]) >= 2
    assert line["event"] == "round"


def test_a_clock_that_jumps_changes_nothing(tmp_path, x64):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    hub = case.hub(tmp_path, Attendance(sites, np.ones((ROUNDS, 4), bool)))
    times = iter([1e9, 5e9, 0.0, -1e9, *np.linspace(4e9, 0, 40)])
    hub.journal.clock = lambda: float(next(times))
    hub.run(ROUNDS)
    hub.finish()
    assert furthest(case, sites, np.ones((ROUNDS, 4), bool)) < 1e-9
    assert case.hub(tmp_path, InProcess({})).held.round == ROUNDS + 1


def test_a_late_joiner_takes_part_from_then_on(tmp_path, x64):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    active = np.ones((6, 4), bool)
    active[:3, 3] = False
    hub = case.hub(tmp_path, Attendance(sites, np.ones((6, 4), bool)))
    hub.sizes.pop("elm")
    hub.run(3)
    hub.sizes["elm"] = case.sizes["elm"]
    hub.run(6)
    hub.finish()
    assert furthest(case, sites, active) < 1e-9


def test_a_run_can_be_stopped_and_goes_on_later(tmp_path, x64):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    lines: list[dict] = []
    hub = case.hub(tmp_path, Attendance(sites, np.ones((6, 4), bool)))
    assert not hub.run(6, lines.append, stop=lambda: "stopped" if len(lines) == 2 else None)
    hub = case.hub(tmp_path, Attendance(sites, np.ones((6, 4), bool)))
    assert hub.run(6, lines.append)
    hub.finish()
    assert [line["round"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert furthest(case, sites, np.ones((6, 4), bool)) < 1e-9


def test_the_journal_is_json_that_says_who_answered_weights_and_bytes(tmp_path):
    case = case_of(FEDAVG)
    hub = case.hub(tmp_path, Attendance(case.sites(tmp_path), np.ones((2, 4), bool)))
    hub.one_round()
    line = json.loads((tmp_path / "hub" / "journal.jsonl").read_text().splitlines()[-1])
    assert line["answered"] == list(NAMES)
    assert np.shape(line["weights"]) == (1, 4)
    assert line["bytes"] > 0
    assert line["refused"] == []
    assert line["errors"] == {}


def test_rows_of_a_site_are_its_slice_of_the_block():
    block: Block = own_block(np.ones((2, 3)), np.array([0, 1]), 5, True)
    assert block.X.shape == (2, 3)
    assert (int(block.size), int(block.id), block.y.dtype) == (2, 5, jnp.int32)
    assert own_block(np.ones((0, 3)), np.zeros(0), 0, False).X.shape == (1, 3)
