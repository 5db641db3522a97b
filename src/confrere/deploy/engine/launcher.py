"""The site's own launcher of job processes: one that is killed (out of memory, an operator) is started again.

FLARE's own launcher reports a killed process, and the hub then ends the job for everybody. Ordinary ends, refusals by
the site's policy among them, are reported as they are. Tied to FLARE 2.9: see its `process_launcher`.
"""

import os
import shlex
import time
from collections.abc import Callable
from typing import Any

from nvflare.apis.fl_constant import FLContextKey, JobConstants
from nvflare.app_common.job_launcher import process_launcher
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher


class PersistentHandle(process_launcher.ProcessHandle):
    """A job process, and those that take its place."""

    def __init__(self, spawn: Callable[[], Any], restarts: int, pause: float):
        self.spawn, self.restarts, self.pause, self.stopping = spawn, restarts, pause, False
        super().__init__(process_adapter=spawn())

    def terminate(self) -> None:
        """End it for good."""
        self.stopping = True
        self.adapter.terminate()

    def wait(self) -> None:
        """Wait until it ends by itself, is told to end, or was killed too often."""
        while True:
            self.adapter.wait()
            code = self.adapter.poll()
            if self.stopping or code is None or code >= 0 or self.restarts <= 0:
                return
            self.restarts -= 1
            time.sleep(self.pause)
            if not self.stopping:
                self.adapter = self.spawn()


class RestartingLauncher(ClientProcessJobLauncher):
    """Named by the site in its own settings."""

    def __init__(self, restarts: int = 1000, pause: float = 0.5):
        super().__init__()
        self.restarts, self.pause = restarts, pause

    def launch_job(self, job_meta: dict[str, Any], fl_ctx: Any) -> PersistentHandle:
        """As its parent does it, with a handle that persists."""
        env = os.environ.copy()
        workspace = fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT)
        custom = workspace.get_app_custom_dir(job_meta.get(JobConstants.JOB_ID))
        if custom:
            process_launcher.add_custom_dir_to_path(custom, env)
        env.update(process_launcher.get_credential_env(fl_ctx.get_prop(FLContextKey.JOB_PROCESS_ARGS) or {}))
        command = shlex.split(self.get_command(job_meta, fl_ctx), True)
        return PersistentHandle(lambda: process_launcher.spawn_process(command, env), self.restarts, self.pause)
