"""Over NVIDIA FLARE, with real processes and mTLS on this machine: the simulator's models, whatever is killed."""

import importlib.util
import json
import os
import socket
import ssl
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.conftest import in_ci
from tests.hospitals import SITES, study, tables

if importlib.util.find_spec("nvflare") is None and not in_ci():
    pytest.skip("NVIDIA FLARE is not installed (confrere[deploy])", allow_module_level=True)

from confrere.deploy.engine import processes
from confrere.deploy.engine.job import CONTROLLER, EXECUTOR, write_job
from confrere.deploy.engine.kits import (
    KitError,
    hub_approve,
    hub_init,
    kit_of,
    name_in,
    organisation_of,
    site_install,
    site_request,
)
from confrere.deploy.engine.processes import client
from confrere.deploy.engine.supervisor import session
from confrere.deploy.revoked import SAID, readmit, revoke
from confrere.deploy.stations import STOP, read_hub, want_study
from confrere.deploy.study import study_of
from confrere.deploy.twin import model_at, simulated
from tests.deployed_recipes import RECIPES, has_linear_model, study_with
from tests.federation import Federation
from tests.meeting import free_port


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("federation"))
    made.provision()
    made.start("hub", *SITES)
    yield made
    made.stop()


def furthest(federation, asked, names=SITES) -> float:
    """The largest difference between the models at the sites and the simulator's."""
    history = simulated(asked, tables(federation.sites))
    worst = 0.0
    for name in names:
        found = federation.model(name, asked)
        wanted = jax.tree.leaves_with_path(model_at(history, name))
        assert found is not None
        for path, leaf in wanted:
            own = found["/".join(["0", *(str(step.key) for step in path)])]
            assert own.dtype == leaf.dtype
            worst = max(worst, float(np.abs(own - leaf).max() / max(1, np.abs(leaf).max())))
    return worst


THREE = (
    (study("scaffold", more="double = true"), SITES),
    (study("weight_erosion", "lr = 0.5, p_d = 0.05, batch = 8", 'user = "cedar"\ndouble = true'), ("cedar",)),
    (study("fedavg", more="double = false"), SITES),
)


def test_three_studies_over_the_engine_end_with_the_simulators_models(federation):
    studies = [asked for asked, _ in THREE]
    for asked in studies:
        federation.approve(asked)
    found = federation.run(*studies)
    assert [one["event"] for one in found] == ["finished"] * 3, found
    assert [one["refused"] for one in found] == [0, 0, 0]
    for asked, names in THREE:
        assert furthest(federation, asked, names) < (1e-9 if asked.said.study.double else 1e-5)
    assert federation.model("ash", THREE[1][0]) is None  # no site has another's finished model


@pytest.mark.slow
@pytest.mark.parametrize("double", [True, False])
def test_every_recipe_over_the_engine_ends_with_the_simulators_models(federation, double):
    names = [name for name in RECIPES if double or has_linear_model(name)]
    studies = {name: study_with(name, double) for name in names}
    for asked in studies.values():
        federation.approve(asked)
    found = federation.run(*studies.values())
    assert {name: one["event"] for name, one in zip(names, found, strict=True)} == dict.fromkeys(names, "finished")
    assert {one["round"] for one in found} == {10}
    assert {one["refused"] for one in found} == {0}
    far = {name: furthest(federation, asked, holders_of(asked)) for name, asked in studies.items()}
    assert {name: value for name, value in far.items() if not value < (1e-9 if double else 1e-5)} == {}
    for asked in studies.values():  # no site has another's finished model
        assert {name for name in SITES if federation.model(name, asked)} == set(holders_of(asked))


def holders_of(asked) -> tuple[str, ...]:
    """The sites for which a study makes a model."""
    user = asked.said.study.user
    return SITES if user is None else (user,)


def test_a_study_that_nobody_approved_is_refused_by_all(federation):
    [found] = federation.run(study("fedavg", "lr = 0.123"))
    assert found["event"] == "refused"
    assert set(found["refuses"]) == set(SITES)
    assert all("has not approved" in why[0] for why in found["refuses"].values())


@pytest.mark.slow
def test_a_revoked_site_is_shut_out_of_the_run_and_can_connect_no_more(federation):
    asked = long_study(50_000)
    federation.approve(asked)
    want_study(federation.hub, asked)
    federation.wait_for_round(asked, 5)
    assert "elm" in federation.lines(asked)[-1]["answered"]
    revoke(federation.hub, "elm")
    federation.wait(lambda: federation.lines(asked)[-1].get("errors", {}).get("elm") == SAID)
    with pytest.raises(KitError, match="elm was revoked"):
        hub_approve(federation.hub, federation.hub / "requests" / "elm.request.zip")
    federation.processes["elm"].terminate()
    federation.processes["elm"].wait(60)
    federation.start("elm")
    federation.wait(lambda: "Reject disabled client registration: elm" in federation.server_log())
    federation.wait(lambda: federation.lines(asked)[-1]["answered"] == ["ash", "birch", "cedar"])
    readmit(federation.hub, "elm")
    federation.wait(lambda: "elm" in federation.lines(asked)[-1].get("answered", ()))
    (federation.folder(asked) / STOP).touch()
    federation.wait(lambda: federation.lines(asked)[-1]["event"] in ("stopped", "finished"))


def test_a_connection_with_a_certificate_of_another_authority_is_closed(federation, tmp_path):
    other = tmp_path / "other"
    hub_init(other, "localhost", free_port())
    sent = site_request(tmp_path / "ash", "ash", "hospital", "confrere")
    name, signed = hub_approve(other, sent.rename(tmp_path / "download (1).zip"))  # whatever it is called on its way
    assert (name, signed) == ("ash", other / "requests" / "ash.signed.zip")
    foreign = site_install(tmp_path / "ash", "ash", signed, read_hub(other).fingerprint)
    own = kit_of(federation.sites["ash"] / "kit", "ash")
    federation.wait(lambda: answers(federation.port, own))
    assert not answers(federation.port, foreign)


def answers(port: int, kit: Path) -> bool:
    """Whether the hub speaks with whoever shows the certificate of a kit, whatever authority it is by."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(kit / "startup" / "client.crt", kit / "startup" / "client.key")
    context.set_alpn_protocols(["h2"])
    try:
        with socket.create_connection(("localhost", port), 10) as plain, context.wrap_socket(plain) as secure:
            secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
            return bool(secure.recv(1))
    except OSError:
        return False


def long_study(rounds: int):
    """Long enough for something to happen meanwhile."""
    text = study("scaffold", more="double = true").content.decode().replace("rounds = 10", f"rounds = {rounds}")
    return study_of(text.replace("deadline = 120.0", "deadline = 5.0").encode())


def test_a_job_process_that_is_killed_comes_back_and_changes_nothing(federation):
    asked = long_study(250)
    federation.approve(asked)
    want_study(federation.hub, asked)
    federation.wait_for_round(asked, 5)
    federation.kill_job("birch")
    [found] = federation.run(asked)
    assert found["event"] == "finished"
    rounds = [line for line in federation.lines(asked) if line["event"] == "round"]
    assert [line["round"] for line in rounds] == list(range(1, 251))
    active = np.array([[name in line["answered"] for name in SITES] for line in rounds])
    history = simulated(asked, tables(federation.sites), active)
    assert not active[:, SITES.index("birch")].all()
    own = federation.model("birch", asked)
    assert own is not None
    np.testing.assert_allclose(own["0/w"], model_at(history, "birch")["w"], atol=1e-9)


@pytest.mark.slow
def test_a_host_that_is_killed_and_started_again_is_back_in_the_run(federation):
    asked = long_study(1000)
    federation.approve(asked)
    want_study(federation.hub, asked)
    federation.wait_for_round(asked, 20)
    federation.processes["elm"].kill()  # its children end with it
    federation.processes["elm"].wait()
    federation.wait(lambda: any("elm" in line.get("errors", {}) for line in federation.lines(asked)[-5:]))
    federation.start("elm")
    away = len(federation.lines(asked))
    federation.wait(lambda: any("elm" in line.get("answered", ()) for line in federation.lines(asked)[away:]))
    numbers = [line["round"] for line in federation.lines(asked) if line["event"] == "round"]
    assert numbers == list(range(1, len(numbers) + 1))
    (federation.folder(asked) / STOP).touch()
    federation.wait(lambda: federation.lines(asked)[-1]["event"] in ("stopped", "finished"))


BROUGHT = """from nvflare.apis.executor import Executor

open({mark!r}, "w").close()


class Brought(Executor):
    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        return shareable
"""


def foreign_job(folder: Path, sites, path: str) -> Path:
    """A job whose class at the sites is not ours."""
    job = write_job(folder / "job", [], sites)
    config = job / "app" / "config" / "config_fed_client.json"
    config.write_text(config.read_text().replace(EXECUTOR, path))
    return job


def job_with_code(folder: Path, sites) -> tuple[Path, Path]:
    """A job that brings its class along, and the file that it leaves when it is loaded."""
    job, mark = foreign_job(folder, sites, "brought.Brought"), folder / "was-loaded"
    (job / "app" / "custom").mkdir()
    (job / "app" / "custom" / "brought.py").write_text(BROUGHT.format(mark=str(mark)))
    return job, mark


def submitted(federation, job: Path) -> str:
    """How a job ended that the hub's own role submitted."""
    admin = session(federation.hub)
    try:
        number = admin.submit_job(str(job))
        federation.wait(lambda: "FINISHED" in str(admin.get_job_meta(number)["status"]))
        return str(admin.get_job_meta(number)["status"])
    finally:
        admin.close()


def test_a_running_hub_refuses_a_job_that_brings_code(federation, tmp_path):
    federation.wait(lambda: federation.connected() == set(SITES))
    job, mark = job_with_code(tmp_path, SITES)
    assert "COMPLETED" not in submitted(federation, job)
    assert "BYOC not permitted" in federation.server_log()
    assert not mark.exists()


@pytest.mark.slow
def test_a_running_site_refuses_code_that_its_hub_would_let_through(tmp_path):
    made = Federation(tmp_path / "loose")
    made.provision()
    rights = kit_of(made.hub / "kits", "localhost") / "local" / "authorization.json"
    rights.write_text(rights.read_text().replace('"byoc": "none"', '"byoc": "any"'))
    made.start("hub", "ash")
    try:
        made.wait(lambda: made.connected() == {"ash"})
        job, mark = job_with_code(tmp_path, ["ash"])
        assert "COMPLETED" not in submitted(made, job)
        assert "ash: NVFLARE_ERROR: BYOC not permitted" in made.server_log()
        assert not mark.exists()
    finally:
        made.stop()


@pytest.mark.slow
def test_running_sites_load_no_class_but_ours(federation, tmp_path):
    federation.wait(lambda: federation.connected() == set(SITES))
    path = "nvflare.app_common.executors.model_learner_executor.ModelLearnerExecutor"
    assert "COMPLETED" not in submitted(federation, foreign_job(tmp_path, SITES, path))
    for place in federation.sites.values():
        assert f"'{path}' at config path 'executors.#1.executor' is not in allow_list" in (
            place / "client.log"
        ).read_text(errors="replace")


def test_no_role_may_bring_code_and_no_class_but_ours_is_allowed(federation):
    kits = {"hub": kit_of(federation.hub / "kits", "localhost")}
    kits |= {name: kit_of(place / "kit", name) for name, place in federation.sites.items()}
    for who, kit in kits.items():
        rights = json.loads((kit / "local" / "authorization.json").read_text())["permissions"]
        assert {role: allowed["byoc"] for role, allowed in rights.items()} == dict.fromkeys(
            ("project_admin", "org_admin", "lead", "member"), "none"
        )
        assert all(allowed["shell_commands"] == "none" for allowed in rights.values())
        settings = json.loads((kit / "local" / "resources.json").read_text())
        assert settings["class_list_enforcement_mode"] == "enforce"
        assert settings["class_allow_list"] == [CONTROLLER if who == "hub" else EXECUTOR]
        if who != "hub":
            assert settings["allow_log_streaming"] is False
            assert "site_log_streamer" not in {part["id"] for part in settings["components"]}


def test_a_site_goes_by_the_organisation_that_its_certificate_names(federation):
    for name, place in federation.sites.items():
        kit = kit_of(place / "kit", name)
        assert organisation_of(kit) == f"{name}_clinic"
        assert f"org={name}_clinic" in client(kit, place, organisation_of(kit)).command


def test_the_engine_puts_no_message_together_that_is_larger_than_ours_may_be(tmp_path, monkeypatch):
    from nvflare.fuel.f3.stream_cell import StreamCell  # noqa: F401, for its modules import each other
    from nvflare.fuel.f3.streaming.blob_streamer import BlobHandler, BlobTask
    from nvflare.fuel.f3.streaming.stream_types import Stream, StreamError, StreamFuture
    from nvflare.fuel.utils.config_service import ConfigService

    class Huge(Stream):
        def read(self, chunk_size):
            raise AssertionError("nothing of it is read")

    monkeypatch.setattr(ConfigService, "_var_values", {})  # it remembers what it was asked before
    for name, value in processes.environment(processes.SITE, tmp_path).items():
        monkeypatch.setenv(name, value)
    limit = BlobHandler(print).max_blob_size
    assert limit == 512 << 20 > 6 * 8 * 10_000_000
    with pytest.raises(StreamError, match="exceeds configured limit"):
        BlobTask(StreamFuture(1), Huge(limit + 1), limit)


def test_private_keys_stay_with_their_owners(federation):
    at_hub = {path.name for path in federation.hub.rglob("*.key")}
    assert not at_hub & {f"{name}.key" for name in SITES}
    for name, place in federation.sites.items():
        keys = list(place.rglob("*.key"))
        assert keys
        assert all(os.stat(key).st_mode & 0o077 == 0 for key in keys), name
    assert federation.hub.stat().st_mode & 0o077 == 0


def test_a_certificate_of_another_authority_is_not_installed(federation):
    place = federation.sites["ash"]
    before = kit_of(place / "kit", "ash")
    settings = (before / "local" / "resources.json").read_bytes()
    wrong = "SHA256:" + ":".join(["00"] * 32)
    with pytest.raises(KitError, match=r"(?i)fingerprint"):
        site_install(place, "ash", federation.hub / "requests" / "ash.signed.zip", wrong)
    assert (before / "local" / "resources.json").read_bytes() == settings  # what was installed stays
    assert not (place / "kit.new").exists()


def test_a_request_that_is_no_sites_is_refused(federation, tmp_path):
    with pytest.raises(KitError, match="is no site's"):
        name_in(federation.hub / "localhost" / "localhost.request.zip")
    (tmp_path / "x.request.zip").write_bytes(b"nothing")
    with pytest.raises(KitError, match="is no request"):
        name_in(tmp_path / "x.request.zip")
