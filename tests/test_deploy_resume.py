"""What goes on by itself after it failed: studies, jobs, sites that were away; and what is never done twice at once."""

import concurrent.futures
import errno
import json
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import confrere as cf
from confrere.deploy import journal as journals
from confrere.deploy import store as stores
from confrere.deploy import tally as tallies
from confrere.deploy.conduct import STUDY, Refusal
from confrere.deploy.desk import Desk
from confrere.deploy.engine.supervisor import AGAIN, GATHERED, SETTLED, Patience, Supervisor
from confrere.deploy.exchange import BUSY, TIMEOUT, UNREACHABLE, InProcess, Pending, gathered
from confrere.deploy.hub import Absence
from confrere.deploy.journal import Journal, last_line, read_journal
from confrere.deploy.stations import LOCK, alone_in, is_over, want_study
from tests.deployed import FEDAVG, NAMES, Attendance, case_of, furthest
from tests.hospitals import SITES, approve, conduct, make_sites, study

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path)


def test_a_site_that_is_still_at_work_is_not_asked_again():
    go_on, asked = threading.Event(), list[str]()

    def ask(site, request, deadline):
        asked.append(site)
        if site == "slow":
            go_on.wait(60)
        return request

    before: Pending = {}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        requests = {"quick": b"1", "slow": b"1"}
        assert gathered(ask, pool, requests, 60.0, 1, before) == ({"quick": b"1"}, {"slow": TIMEOUT})
        for _ in range(50):
            assert gathered(ask, pool, requests, 60.0, 1, before) == ({"quick": b"1"}, {"slow": BUSY})
        go_on.set()
        concurrent.futures.wait(before.values())
        assert gathered(ask, pool, requests, 60.0, None, before)[1] == {}
    assert asked.count("slow") == 2
    assert not before


def test_the_last_line_is_found_in_a_journal_of_any_length(tmp_path):
    assert last_line(tmp_path) is None
    journal = Journal(tmp_path, "ab" * 32, "")
    for number in range(300):
        journal.note("round", round=number, words="x" * 200)
    assert last_line(tmp_path) == read_journal(tmp_path)[-1]
    long = journal.note("opened", words="y" * 200_000)
    assert last_line(tmp_path) == long
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"event": "rou')  # cut off
    assert last_line(tmp_path) == long
    journal.note("resumed")
    assert [line["event"] for line in read_journal(tmp_path)[-2:]] == ["opened", "resumed"]


def test_a_study_has_one_hub_at_a_time_and_the_lock_of_one_that_was_killed_is_gone(tmp_path):
    holds = f"""if True:
        import fcntl, time
        file = open({str(tmp_path / LOCK)!r}, "a")
        fcntl.flock(file, fcntl.LOCK_EX)
        print("held", flush=True)
        time.sleep(100)"""
    with subprocess.Popen([sys.executable, "-c", holds], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(OSError, match="another process runs the study"), alone_in(tmp_path, 0.2):
            pass
        other.kill()
    with alone_in(tmp_path, 5.0):
        pass


def test_sites_that_are_merely_away_are_waited_for_and_are_no_refusal(places, tmp_path):
    asked = study()
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    everybody = dict(run.plainly.answers)
    run.plainly = InProcess({"ash": everybody["ash"]})
    with pytest.raises(Absence, match="birch: it cannot be reached"):
        run.whole()
    assert not is_over(tmp_path / "hub")
    run.plainly = InProcess(everybody)
    assert run.whole()["event"] == "finished"


def test_who_refuses_by_its_own_word_is_not_waited_for(places, tmp_path):
    asked = study()
    approve({name: places[name] for name in ("ash", "birch")}, asked)
    run = conduct(places, asked, tmp_path / "hub")
    run.plainly.answers = {name: run.plainly.answers[name] for name in ("ash", "cedar", "elm")}  # birch is away
    with pytest.raises(Absence):  # ash and birch would be enough
        run.whole()
    for name in ("ash", "birch"):
        run.plainly.answers[name] = Desk(places[name]).answer
        for file in places[name].glob("approved.json"):
            file.unlink()
    with pytest.raises(Refusal):
        run.whole()
    assert is_over(tmp_path / "hub")


def test_sites_that_were_all_away_when_the_hub_came_back_still_count_each_others_rows(places, tmp_path):
    asked = study()
    approve(places, asked)
    lines: list[dict] = []
    conduct(places, asked, tmp_path / "hub").whole(lines.append, stop=lambda: "stopped" if len(lines) == 2 else None)
    again = conduct(places, asked, tmp_path / "hub")
    everybody = dict(again.plainly.answers)
    again.plainly = InProcess({})
    with pytest.raises(Absence):
        again.whole()
    third = conduct(places, asked, tmp_path / "hub")
    third.plainly = InProcess(everybody)
    assert third.whole()["event"] == "finished"  # each of them wants a fifth of the rows to be others'


def test_a_finished_model_is_brought_to_a_site_that_was_away_when_it_was_finished(tmp_path, x64):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    here = np.ones((6, len(NAMES)), bool)
    here[3:5, 2] = False  # calls 3 and 4 are the first two tries of the end
    hub = case.hub(tmp_path, Attendance(sites, here))
    hub.run(3)
    line = hub.finish()
    assert line["answered"] == list(NAMES)
    assert line["errors"] == {}
    assert furthest(case, sites, np.ones((3, 4), bool)) < 1e-9


def test_a_run_whose_sites_are_away_too_long_is_absence_and_not_given_up(tmp_path):
    hub = case_of(FEDAVG).hub(tmp_path, InProcess({}), attempts=3)
    with pytest.raises(Absence, match="round 1 was abandoned 3 times"):
        hub.run(3)


def test_bytes_are_still_counted_after_a_full_disk_and_after_a_power_cut(places, tmp_path, monkeypatch):
    asked = study()
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    lines: list[dict] = []

    def watch(line):
        lines.append(line)
        monkeypatch.undo()
        if line["round"] == 3:
            monkeypatch.setattr(tallies, "write_whole", full_disk)
        if line["round"] == 6:
            [file] = (places["elm"] / "state").glob("tally-*.json")
            assert json.loads(file.read_text())["bytes"] > 1000
            file.write_text("")

    run.whole(watch)
    assert [len(line["answered"]) for line in lines] == [4] * 3 + [0] + [4] * 7
    assert set(lines[3]["errors"].values()) == {"its disk: No space left on device"}


FATES = ("hub stops", "hub stops before its line", "hub's disk", "site starts anew", "site's disk", "silent", "clock")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_files_bear_sixty_faults_at_random(seed, tmp_path, monkeypatch, x64):
    case = case_of(cf.scaffold(lr=0.2, batch=4))
    dice = random.Random(seed)
    sites = case.sites(tmp_path)
    away: set[str] = set()
    clock = [1e9]

    def exchange(requests, deadline, enough=None):
        return InProcess({n: s.answer for n, s in sites.items() if n not in away})(requests, deadline, enough)

    def started():
        made = case.hub(tmp_path, exchange, minimum=0.5)
        made.journal.clock = lambda: clock[0]
        return made

    hub = started()
    for _ in range(60):
        fate, name = dice.choice(FATES), dice.choice(NAMES)
        if fate == "hub stops":
            monkeypatch.setattr(hub, "mix", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                hub.one_round()
            hub = started()
        elif fate == "hub stops before its line":
            monkeypatch.setattr(hub.journal, "write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                hub.one_round()
            hub = started()
        elif fate == "site starts anew":
            sites[name] = case.site(name, tmp_path)
        elif fate == "clock":
            clock[0] += dice.uniform(-1e8, 1e8)
        else:
            with monkeypatch.context() as patch:
                if fate == "hub's disk":
                    patch.setattr(journals, dice.choice(["write_whole", "write_through"]), full_disk)
                elif fate == "site's disk":
                    patch.setattr(stores, "write_whole", only_there(stores.write_whole, name))
                else:
                    away.add(name)
                before, line = hub.held.digest, hub.one_round()
                assert line["event"] == "round" or hub.held.digest == before
            away.clear()
        hub.one_round()
    hub.finish()
    lines = [line for line in hub.journal.lines() if line["event"] == "round"]
    assert [line["round"] for line in lines] == list(range(1, hub.held.round))
    active = np.array([[name in line["answered"] for name in NAMES] for line in lines])
    assert not active.all()
    assert furthest(case, sites, active) < 1e-9
    assert all(len(site.store.rounds()) <= stores.KEPT + 1 for site in sites.values())


def full_disk(*_, **__):
    raise FULL


def only_there(write, name):
    def at_one_site(path, content):
        if name in path.parts:
            raise FULL
        write(path, content)

    return at_one_site


class Engine:
    """A session with an engine that does as it is told."""

    def __init__(self, sites):
        self.sites, self.jobs, self.status = set(sites), list[str](), "RUNNING"

    def get_system_info(self):
        clients = [type("Client", (), {"name": name, "last_connect_time": None}) for name in self.sites]
        return type("Info", (), {"client_info": clients})

    def submit_job(self, folder):
        self.jobs.append(folder)
        self.status = "RUNNING"
        return f"job-{len(self.jobs)}"

    def get_job_meta(self, job):
        return {"status": self.status}

    def abort_job(self, job):
        self.status = "FINISHED:ABORTED"

    def close(self):
        pass


class Watch:
    """A supervisor of an engine, and the time."""

    def __init__(self, hub, sites):
        self.engine, self.time = Engine(sites), 1000.0
        self.supervisor = Supervisor(hub, lambda _: self.engine, lambda: self.time)

    def after(self, seconds: float) -> int:
        """The number of jobs that were submitted until then."""
        ends = self.time + seconds
        while self.time < ends:
            self.time += 0.5
            self.supervisor.step()
        return len(self.engine.jobs)


def test_a_job_is_submitted_when_enough_sites_are_there_and_all_that_come_together(tmp_path):
    folder = want_study(tmp_path, study())
    watch = Watch(tmp_path, ["ash"])
    assert watch.after(30) == 0
    assert read_journal(folder)[-1]["why"].endswith("birch, cedar, elm")
    assert len(read_journal(folder)) == 1
    watch.engine.sites |= {"birch", "cedar"}
    assert watch.after(GATHERED / 2) == 0  # the fourth may be on its way
    assert watch.after(GATHERED) == 1
    watch.engine.sites.add("elm")
    assert watch.after(AGAIN) == 2
    assert watch.supervisor.members == set(SITES)


def test_a_study_whose_file_is_damaged_holds_up_no_other(tmp_path):
    damaged, whole = want_study(tmp_path, study("local")), want_study(tmp_path, study())
    (damaged / STUDY).write_text("[study")
    watch = Watch(tmp_path, SITES)
    assert watch.after(2) == 1
    assert watch.supervisor.studies == [whole.name]
    [line] = read_journal(damaged)
    assert line["event"] == "failed"
    assert "study.toml" in line["why"]
    want_study(tmp_path, study("local"))  # deploy writes the file anew
    watch.supervisor.forget()
    assert watch.after(2 * AGAIN) == 2
    assert set(watch.supervisor.studies) == {damaged.name, whole.name}


def test_a_job_of_an_engine_that_was_started_anew_is_submitted_again(tmp_path):
    folder = want_study(tmp_path, study())
    watch = Watch(tmp_path, SITES)
    assert watch.after(1) == 1
    Journal(folder, "", "").note("begun", round=1)
    assert watch.after(60) == 1
    watch.supervisor.forget()  # the engine still says that the old one is running
    assert watch.after(2 * AGAIN) == 2


def test_a_site_that_is_connected_but_out_of_reach_makes_a_new_job_more_and_more_rarely(tmp_path):
    folder = want_study(tmp_path, study())
    watch = Watch(tmp_path, SITES)
    watch.after(1)
    journal = Journal(folder, "", "")
    journal.note("round", round=1, errors={"elm": f"{UNREACHABLE} (COMMUNICATION_ERROR)"})
    assert watch.after(SETTLED - 2) == 1
    assert watch.after(2 * AGAIN) >= 2
    assert watch.after(100) < 6


def test_patience_doubles_and_ends():
    now = [0.0]
    patience = Patience(lambda: now[0])
    tried = []
    for second in range(200):
        now[0] = float(second)
        if patience.may_try({"x"}):
            tried.append(second)
    assert tried == [0, 10, 30, 70, 150]
    now[0] = 10_000.0
    assert patience.may_try({"x"})
