"""Set-up by operators who slip, or are interrupted, and say it again: with the engine's real certificates."""

import importlib.util
import json

import pytest
from typer.testing import CliRunner

from tests.conftest import in_ci

if importlib.util.find_spec("nvflare") is None and not in_ci():
    pytest.skip("NVIDIA FLARE is not installed (confrere[deploy])", allow_module_level=True)

from confrere.cli.app import app
from confrere.deploy.engine import kits
from confrere.deploy.engine.kits import KitError, hub_approve, hub_init, site_install, site_request
from confrere.deploy.stations import read_hub


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub whose set-up went wrong twice before it was right."""
    place = tmp_path_factory.mktemp("setup") / "hub"
    for host, port, said in (("bad host", 8002, "--host is a name"), ("localhost", 99999, "from 1 to 65535")):
        with pytest.raises(ValueError, match=said):
            hub_init(place, host, port)
        assert not place.exists()
    (place / kits.APART / "ca").mkdir(parents=True)  # as if it had been killed in the middle
    hub_init(place, "localhost", 8002)
    return place


def test_a_hub_is_made_after_a_slip_and_after_an_interruption(hub):
    assert read_hub(hub).port == 8002
    assert not (hub / kits.APART).exists()
    settings = (kits.kit_of(hub / "kits", "localhost") / "local" / "resources.json").read_text()
    assert f"{hub.resolve()}/flare/" in settings
    assert kits.APART not in settings


def test_a_hub_is_not_made_where_other_files_are(tmp_path):
    (tmp_path / "ca").mkdir()
    with pytest.raises(ValueError, match=r"holds other files \(ca\): choose an empty folder"):
        hub_init(tmp_path, "localhost", 8002)
    assert [path.name for path in tmp_path.iterdir()] == ["ca"]


def test_what_fails_half_way_leaves_nothing_behind(tmp_path, monkeypatch):
    def broken(folder, *words):
        (folder / "ca").mkdir()
        raise KitError("nvflare cert: no")

    monkeypatch.setattr(kits, "flare", broken)
    with pytest.raises(KitError):
        hub_init(tmp_path / "hub", "localhost", 8002)
    assert list((tmp_path / "hub").iterdir()) == []


def test_a_request_can_be_asked_for_again_and_is_the_same(hub, tmp_path):
    first = site_request(tmp_path / "elm", "elm", "clinic", "confrere")
    content = first.read_bytes()
    assert site_request(tmp_path / "elm", "elm", "clinic", "confrere").read_bytes() == content
    key = first.with_name("elm.key").read_bytes()
    other = site_request(tmp_path / "elm", "elm", "another_clinic", "confrere")  # the organisation was a slip
    assert other.with_name("elm.key").read_bytes() != key
    _, signed = hub_approve(hub, other)
    site_install(tmp_path / "elm", "elm", signed, read_hub(hub).fingerprint)
    with pytest.raises(ValueError, match="has a certificate already"):
        site_request(tmp_path / "elm", "elm", "clinic", "confrere")


def test_a_request_without_its_policy_file_is_finished_by_the_same_command(tmp_path):
    words = ["site", "request", "yew", "--folder", str(tmp_path / "yew")]
    assert CliRunner().invoke(app, words).exit_code == 0
    (tmp_path / "yew" / "site.toml").unlink()
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0, again.output
    assert (tmp_path / "yew" / "site.toml").is_file()


def test_the_same_request_gives_the_same_certificate_and_another_is_refused(hub, tmp_path):
    sent = site_request(tmp_path / "oak", "oak", "clinic", "confrere")
    name, signed = hub_approve(hub, sent)
    content = signed.read_bytes()
    assert hub_approve(hub, sent) == (name, signed)
    other = site_request(tmp_path / "other", "oak", "clinic", "confrere")
    with pytest.raises(KitError, match=r"another request was signed for oak.*new name.*hub revoke"):
        hub_approve(hub, other)
    assert signed.read_bytes() == content
    assert (hub / "requests" / "oak.request.zip").read_bytes() == sent.read_bytes()


def test_a_request_for_another_project_is_refused(hub, tmp_path):
    sent = site_request(tmp_path / "ivy", "ivy", "clinic", "other")
    with pytest.raises(KitError, match="for the project 'other', and the hub's is 'confrere'"):
        hub_approve(hub, sent)
    assert not (hub / "requests" / "ivy.request.zip").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["north", "--organisation", "My Hospital"], "letters, digits and underscores, 64 at most, not 'My Hospital': "
         "say --organisation My_Hospital"),
        (["north", "--project", "a b"], "a project's name has letters, digits, hyphens, dots and underscores"),
        (["North"], "a site's name has small letters, digits and hyphens"),
        (["north-"], "begins and ends with a letter or digit"),
    ],
)  # fmt: skip
def test_names_that_no_certificate_bears_are_refused_before_anything_is_made(words, said, tmp_path):
    done = CliRunner().invoke(app, ["site", "request", *words, "--folder", str(tmp_path / "site")])
    assert done.exit_code == 1
    assert said in done.output
    assert not (tmp_path / "site").exists()


def test_the_next_line_of_an_approval_works_as_it_is_printed(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = lambda *words: CliRunner().invoke(app, list(map(str, words)))  # noqa: E731
    assert run("site", "request", "ash", "--folder", "ash").exit_code == 0
    said = run("hub", "approve", hub, "ash/ash/ash.request.zip").output
    (tmp_path / "ash.signed.zip").write_bytes((hub / "requests" / "ash.signed.zip").read_bytes())  # it was sent
    [line] = [line for line in said.splitlines() if "Next, at ash: " in line]
    done = run(*line.split(": ", 1)[1].removeprefix("confrere ").split())
    assert done.exit_code == 0, done.output
    facts = run("hub", "approve", hub, "ash/ash/ash.request.zip", "--json")
    assert json.loads(facts.output)["site"] == "ash"
