"""What the operators' commands say and refuse, without an engine."""

import importlib.util
import json
import socket
import threading
import time

import pytest
from click.testing import Result
from typer.testing import CliRunner

from tests.conftest import in_ci
from tests.hospitals import SITES, approve, conduct, make_sites, study

if importlib.util.find_spec("nvflare") is None and not in_ci():
    pytest.skip("NVIDIA FLARE is not installed (confrere[deploy])", allow_module_level=True)

from confrere.cli import deploy
from confrere.cli.app import app
from confrere.cli.hub import Announcer
from confrere.cli.site import remember_data
from confrere.deploy.desk import WITHDRAWN
from confrere.deploy.engine.reach import Reach, check_free
from confrere.deploy.journal import Journal, read_journal
from confrere.deploy.named import the_one
from confrere.deploy.policy import NOT_APPROVED, read_policy
from confrere.deploy.stations import alone_in, connected_sites, is_over, standing, trouble_of, want_study
from confrere.deploy.telling import told
from tests.test_deploy_resume import Engine, Watch

HASHES = ("3f2a9c" + "0" * 58, "3f2a9c" + "1" * 58, "77aa00" + "2" * 58)


@pytest.mark.parametrize(
    ("beginning", "said"),
    [
        ("", "6 characters of its hash at least"),
        ("77aa0", "6 characters of its hash at least"),
        (HASHES[2][:16] + "garbage", "no study here begins with"),
        ("bbbbbb", "no study here begins with 'bbbbbb'; there is 3f2a9c000000, 3f2a9c111111, 77aa00222222"),
        ("3f2a9c", "2 studies here begin with '3f2a9c': 3f2a9c000000, 3f2a9c111111"),
    ],
)
def test_a_study_is_named_by_six_characters_of_one_hash(beginning, said):
    assert the_one("77aa00", HASHES, "here") == HASHES[2]
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        the_one(beginning, HASHES, "here")


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path / "sites")


@pytest.fixture
def hub(tmp_path):
    """The folder of a hub that does not run."""
    place = tmp_path / "hub"
    place.mkdir()
    about = {"project": "confrere", "host": "localhost", "port": 1, "fingerprint": "SHA256:00"}
    (place / "hub.json").write_text(json.dumps(about))
    return place


def run(*words) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def events(folder) -> list[str]:
    return [line["event"] for line in read_journal(folder)]


def test_a_hub_and_a_site_that_run_are_not_started_a_second_time(hub, places, monkeypatch):
    monkeypatch.setattr("confrere.deploy.engine.kits.kit_of", lambda place, name: place)
    with alone_in(hub), alone_in(places["ash"]):
        for words in (["hub", "start", hub], ["site", "start", "--folder", places["ash"]]):
            done = run(*words)
            assert done.exit_code == 1
            assert "runs already: leave it, or stop it" in done.output
            assert len(done.output.splitlines()) == 1
    assert not (hub / "server.log").exists()


def test_a_port_that_another_program_has_is_refused_before_anything_starts(hub):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen on port {port} .*already in use.*end the program"):
            check_free("localhost", port, hub, 0.1)
    check_free("localhost", port, hub, 0.1)


STARTED = """\
2026-11-18 - conn_manager - INFO - Connection [CN00002 N/A => localhost:{port}] is created: PID: 7
2026-11-18 - FederatedClient - INFO - Successfully registered client:north for project confrere.
"""
JOB_ENDED = """\
2026-11-18 - conn_manager - INFO - Connection [CN00002 127.0.0.1:9 <= 127.0.0.1:8] is created: PID: 8
2026-11-18 - conn_manager - INFO - Connection [CN00002 Not Connected] is closed PID: 8
"""
LOST = "2026-11-18 - conn_manager - INFO - Connection [CN00002 Not Connected] is closed PID: 7\n"
AGAIN = "2026-11-18 - conn_manager - INFO - Connection [CN00003 N/A => localhost:{port}] is created: PID: 7\n"
SHUT_OUT = "2026-11-18 - Authenticator - ERROR - registration rejected: Client 'north' is disabled\n"


def test_a_site_is_connected_from_its_registration_until_its_line_or_the_hubs_port_closes(tmp_path):
    log, time = tmp_path / "client.log", [0.0]
    log.write_text(STARTED.format(port=1))  # of an earlier start
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        listening.listen()
        port = listening.getsockname()[1]
        reach = Reach(log, ("localhost", port), lambda: time[0])
        reach.started(7)

        def after(text: str, seconds: float = 0.5) -> str:
            time[0] += seconds
            with log.open("a") as file:
                file.write(text.format(port=port))
            return reach.state()

        assert after("") == "trying"
        assert after(STARTED) == "connected"
        assert after(JOB_ENDED) == "connected"
        assert after(LOST) == "trying"
        assert after(AGAIN) == "connected"
        assert after(SHUT_OUT) == "refused"
        assert after("", 20.0) == "connected"
        listening.close()
        assert after("", 3.0) == "trying"
        reach.started(8)
        assert not reach.registered


def test_changes_are_said_once_each_and_never_before_they_are_true(capsys):
    words = {name: name for name in ("starting", "connected", "lost", "again", "refused")}
    told = Announcer(words, {"site": "north"}, json=False, quiet=False)
    for state in ("trying", "trying", "connected", "connected", "trying", "connected", "refused"):
        told.say(state)
    assert capsys.readouterr().out.split() == ["starting", "connected", "lost", "again", "refused"]
    told = Announcer(words, {"site": "north"}, json=True, quiet=False)
    told.say("trying")
    told.say("connected")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"event": "starting", "site": "north"}, {"event": "connected", "site": "north"}]


def test_a_study_that_waits_is_stopped_at_once_and_goes_on_when_it_is_asked_for_again(hub):
    folder = want_study(hub, study())
    done = run("stop", study().hash[:6], "--hub", hub)
    assert (done.exit_code, events(folder)) == (0, ["stopped"])
    assert "is stopped; no round was running" in done.output
    assert "is over already (stopped): there is nothing to stop" in run("stop", study().hash, "--hub", hub).output
    want_study(hub, study())
    assert not is_over(folder)
    assert run("stop", "", "--hub", hub).exit_code == 1
    assert not is_over(folder)


def test_a_study_that_runs_is_stopped_by_whoever_runs_it(hub):
    folder = want_study(hub, study())
    Journal(folder, "", "").note("round", round=1)
    with alone_in(folder):
        done = run("stop", study().hash, "--hub", hub, "--json")
        assert json.loads(done.output) == {"study": study().hash, "stopping": True, "event": "stopping"}
        assert events(folder) == ["round"]
        assert standing(folder)["stopping"]
        watch = Watch(hub, SITES)
        watch.after(2)
        assert events(folder) == ["round"]
    watch.after(2)  # whoever ran it was killed before it could say so
    assert events(folder) == ["round", "stopped"]
    assert watch.engine.jobs == []


def test_a_finished_study_stays_finished_when_it_is_asked_for_again_and_stopped(hub):
    folder = want_study(hub, study())
    Journal(folder, "", "").note("finished", round=10, metrics={"ash": {"loss": 0.5}})
    assert "is over already (finished)" in run("stop", study().hash, "--hub", hub).output
    want_study(hub, study())
    found = standing(folder)
    assert (found["event"], found["asked_again"]) == ("finished", True)
    assert "finished, asked again" in run("status", "--hub", hub).output
    assert "stays as it was (finished)" in run("stop", study().hash, "--hub", hub).output
    found = standing(folder)
    assert (found["event"], found["asked_again"]) == ("finished", False)
    assert found["last"]["metrics"] == {"ash": {"loss": 0.5}}


def test_whether_the_hub_runs_is_known_at_once_and_whether_its_engine_answers_within_a_minute(hub):
    assert "the hub does not run; start it (confrere hub start" in str(trouble_of(hub))
    watch = Watch(hub, ["elm", "ash"])
    with alone_in(hub):
        assert "engine does not answer" in str(trouble_of(hub))
        watch.after(3)
        assert trouble_of(hub) is None
        assert connected_sites(hub) == ["ash", "elm"]
        watch.engine.get_system_info = None
        watch.after(3)
        assert "engine does not answer" in str(trouble_of(hub))
        watch.engine.get_system_info = Engine(["ash"]).get_system_info
        watch.after(3)
        assert trouble_of(hub) is None
        assert "engine does not answer" in str(trouble_of(hub, time.time() + 100))
    assert "does not run" in str(trouble_of(hub))
    assert connected_sites(hub) == []


def test_a_study_that_cannot_be_read_is_not_taken_for_an_engine_that_does_not_answer(hub, caplog):
    (want_study(hub, study()) / "study.toml").write_text("no study")
    watch = Watch(hub, SITES)
    watch.after(1)
    assert watch.supervisor.answers
    assert "cannot go on" not in caplog.text


def test_a_study_that_waits_for_a_hub_says_so_also_where_lines_are_hidden(hub, capsys):
    folder = want_study(hub, study())
    threading.Timer(4.0, lambda: Journal(folder, "", "").note("stopped")).start()
    deploy.watch(folder, SITES, 10, hidden=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("Waiting: the hub does not run; start it (confrere hub start")
    assert len(said.err.splitlines()) == 1
    assert "The hub does not run" in run("status", "--hub", hub).output
    [found] = json.loads(run("status", study().hash[:6], "--hub", hub, "--json").output)
    assert found["hub"].startswith("the hub does not run")


def test_a_hub_that_restarts_is_no_trouble_and_one_that_is_back_is_told(capsys):
    now = [0.0]
    troubles = deploy.Troubles(lambda: now[0], 3.0)
    for second, trouble in ((1, "a"), (2, None), (4, "a"), (6, "a"), (7, "a"), (8, None), (9, None)):
        now[0] = float(second)
        troubles.tell(trouble)
    assert capsys.readouterr().err.splitlines() == ["Waiting: a.", "The hub runs again."]


def test_the_engines_own_words_stay_off_standard_output(monkeypatch, tmp_path, capsys):
    import nvflare.fuel.flare_api.flare_api as flare_api

    from confrere.deploy.engine import supervisor

    monkeypatch.setattr(supervisor, "kit_of", lambda place, name: place)
    monkeypatch.setattr(flare_api, "new_secure_session", lambda *_, **__: print("Connecting to FLARE ..."))
    supervisor.session(tmp_path)
    assert capsys.readouterr().out == ""


def proposed(places, asked=None):
    asked = asked or study("weight_erosion", "lr = 0.5", 'user = "cedar"')
    read_policy(places["ash"]).propose(asked)
    return asked


def test_no_study_is_approved_by_an_empty_name(places):
    proposed(places)
    done = run("site", "approve", "", "--folder", places["ash"])
    assert done.exit_code == 1
    assert "6 characters of its hash at least" in done.output
    assert read_policy(places["ash"]).approved() == {}


def test_the_page_of_a_study_says_what_this_site_has_against_it(places):
    asked = proposed(places)
    assert "still not take part" not in run("site", "approve", "--folder", places["ash"]).output
    file = places["ash"] / "site.toml"
    file.write_text(file.read_text() + "max_rounds = 5\n")
    warning = (
        "This site will still not take part, approved or not, until site.toml allows it:\n"
        "  10 rounds are more than the 5 that this site allows"
    )
    assert warning in run("site", "approve", "--folder", places["ash"]).output
    done = run("site", "approve", asked.hash[:6], "--folder", places["ash"])
    assert warning in done.output
    assert done.output.endswith(f"Approved: {asked.hash}\n")


def test_programs_are_told_all_that_the_page_of_a_study_says(places):
    asked = proposed(places)
    [listed] = json.loads(run("site", "approve", "--folder", places["ash"], "--json").output)
    chosen = json.loads(run("site", "approve", asked.hash[:12], "--folder", places["ash"], "--json").output)
    assert (listed["approved"], chosen["approved"]) == (False, True)
    assert (chosen["algorithm"], chosen["user"], chosen["sites"]) == ("weight_erosion", "cedar", list(SITES))
    assert chosen["all_receive_the_working_model"] is True
    assert chosen["told"] == told(asked, "ash")
    assert chosen["objections"] == []


@pytest.mark.parametrize("content", ["{not json", "[]", "\xff"])
def test_a_broken_file_of_approvals_is_named_and_kept(content, places):
    asked = proposed(places)
    (places["ash"] / "approved.json").write_bytes(content.encode("latin-1"))
    for words in ([], [asked.hash]):
        done = run("site", "approve", *words, "--folder", places["ash"])
        assert done.exit_code == 1
        assert "approved.json is broken" in done.output
        assert "mend it, or move it away, and approve again" in done.output
        assert len(done.output.splitlines()) == 1
    assert (places["ash"] / "approved.json").read_bytes() == content.encode("latin-1")


@pytest.mark.parametrize(
    "line", ['data = "patients.csv"', '  data = "patients.csv"   # ours, "quoted"', "\tdata='patients.csv' # ours"]
)
def test_the_path_of_a_table_is_written_where_it_stands_and_comments_stay(line, places):
    file = places["ash"] / "site.toml"
    file.write_text(file.read_text().replace('data = "patients.csv"', line))
    (places["ash"] / "new.csv").write_text("age\n")
    assert remember_data(places["ash"], places["ash"] / "new.csv").data.name == "new.csv"
    assert read_policy(places["ash"]).data == (places["ash"] / "new.csv").resolve()
    assert file.read_text().count("data") == 1
    assert ("# ours" in file.read_text()) == ("# ours" in line)


def test_a_table_that_is_absent_leaves_the_policy_file_as_it_was(places):
    before = (places["ash"] / "site.toml").read_bytes()
    with pytest.raises(FileNotFoundError, match=r"there is no table .*typo.csv"):
        remember_data(places["ash"], places["ash"] / "typo.csv")
    (places["ash"] / "site.toml").write_text('site = { name = "ash", data = "patients.csv" }\n')
    with pytest.raises(ValueError, match="has no line of its own for data"):
        remember_data(places["ash"], places["birch"] / "patients.csv")
    (places["ash"] / "site.toml").write_bytes(before)


def test_a_model_is_fetched_by_the_hash_of_its_study_alone(places, tmp_path):
    asked = study()
    approve(places, asked)
    conduct(places, asked, tmp_path / "run").whole()
    fetch = lambda name: run("fetch", name, "--folder", places["ash"], "--out", tmp_path / "out")  # noqa: E731
    none = "ash has no finished model of study"
    for name, said in (("", "6 characters"), (asked.hash[:16] + "garbage", none), ("0" * 64, "there is")):
        refused = fetch(name)
        assert refused.exit_code != 0
        assert said in refused.output
        assert not (tmp_path / "out").exists()
    assert fetch(asked.hash[:6]).exit_code == 0
    again = fetch(asked.hash[:6])
    assert "is there already: choose another folder" in again.output
    assert "--force" not in again.output


def test_the_hint_after_a_refusal_fits_its_reasons():
    limit = ["20 rounds are more than the 5 that this site allows"]
    unread, both = [f"{NOT_APPROVED}: confrere site approve 3f2a9c"], [*limit, NOT_APPROVED]
    assert deploy.remedies("3f2a9c", {"ash": limit}) == ["mend what ash says, or change the study"]
    assert deploy.remedies("3f2a9c", {"ash": unread, "elm": [WITHDRAWN]}) == [
        "at ash, elm, read and approve it (confrere site approve 3f2a9c)"
    ]
    assert len(deploy.remedies("3f2a9c", {"ash": both})) == 2
    assert deploy.remedies("3f2a9c", {"hub": ["the labels do not agree"]}) == [
        "change the study, or the tables, so that they go together"
    ]
