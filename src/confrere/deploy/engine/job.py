"""The files of a job: names of classes that are installed at every site, and the hash of a study. No code travels."""

import json
from collections.abc import Sequence
from pathlib import Path

CONTROLLER = "confrere.deploy.engine.controller.HubController"
EXECUTOR = "confrere.deploy.engine.executor.SiteExecutor"
LAUNCHER = "confrere.deploy.engine.launcher.RestartingLauncher"


def write_job(folder: Path, studies: Sequence[str], sites: Sequence[str]) -> Path:
    """A job for some studies at some sites."""
    config = folder / "app" / "config"
    config.mkdir(parents=True, exist_ok=True)
    nothing: dict[str, str] = {}
    empty: dict[str, list[str]] = {"components": [], "task_data_filters": [], "task_result_filters": []}
    hub = {"id": "hub", "path": CONTROLLER, "args": {"studies": list(studies)}}
    site = {"tasks": ["none"], "executor": {"path": EXECUTOR, "args": nothing}}
    files = {
        folder / "meta.json": {
            "name": "confrere", "resource_spec": nothing, "min_clients": 1, "deploy_map": {"app": ["server", *sites]},
        },
        config / "config_fed_server.json": {"format_version": 2, "workflows": [hub], **empty},
        config / "config_fed_client.json": {"format_version": 2, "executors": [site], **empty},
    }  # fmt: skip
    for path, content in files.items():
        path.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return folder
