"""The deployment's pages: commands that exist, threats with tests that exist, and settings that defend."""

import json
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from confrere.cli.app import app
from confrere.deploy.engine.job import EXECUTOR
from confrere.deploy.engine.kits import settle_site

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
ROLES = ("project_admin", "org_admin", "lead", "member")
BLOCKS = re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)
COMMANDS = list(dict.fromkeys(line for text in BLOCKS for line in text.splitlines()))


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_guide_is_one_with_these_options(line):
    program, *words = shlex.split(line)
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    assert program == "confrere"
    assert command.make_context(line, words, resilient_parsing=False).params


def test_every_command_of_the_guide_is_run_by_the_example():
    script = (ROOT / "examples" / "four_hospitals.sh").read_text(encoding="utf-8")
    heads = {re.match(r"confrere ((?:hub|site) \w+|\w+)", line)[1] for line in COMMANDS}  # type: ignore[index]
    assert len(heads) == 13
    assert [head for head in sorted(heads) if f'"$bin" {head} ' not in script] == []


def test_every_threat_names_a_test_that_exists():
    table = THREATS.split("## What is defended")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for row in rows:
        named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", row)
        assert named, row
        for file, name in named:
            assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), row


@pytest.fixture
def local(tmp_path):
    """The settings of a site whose engine would allow everything by default."""
    place = tmp_path / "local"
    place.mkdir()
    allowed = dict.fromkeys(("submit_job", "clone_job", "manage_job", "operate", "shell_commands", "byoc"), "any")
    rights = {"format_version": "1.0", "permissions": dict.fromkeys(ROLES, allowed)}
    parts = [{"id": "site_log_streamer"}, {"id": "process_launcher"}, {"id": "resource_manager"}]
    loose = {"class_list_enforcement_mode": "off", "allow_log_streaming": True, "components": parts}
    (place / "authorization.json.default").write_text(json.dumps(rights))
    (place / "resources.json.default").write_text(json.dumps(loose))
    settle_site(tmp_path)
    return {name: json.loads((place / f"{name}.json").read_text()) for name in ("authorization", "resources")}


def test_no_role_may_bring_code_whatever_the_engine_allows_by_default(local):
    rights = local["authorization"]["permissions"]
    assert {role: rights[role]["byoc"] for role in rights} == dict.fromkeys(ROLES, "none")


def test_nobody_but_the_hubs_own_role_may_submit_a_job(local):
    rights = local["authorization"]["permissions"]
    assert [role for role in ROLES if rights[role]["submit_job"] != "none"] == ["lead"]
    forbidden = ("clone_job", "download_job", "operate", "shell_commands")
    assert {rights[role][deed] for role in ROLES for deed in forbidden} == {"none"}


def test_a_site_allows_our_class_alone_and_streams_no_log(local):
    settings = local["resources"]
    assert (settings["class_list_enforcement_mode"], settings["class_allow_list"]) == ("enforce", [EXECUTOR])
    assert settings["allow_log_streaming"] is False
    assert "site_log_streamer" not in {part["id"] for part in settings["components"]}
