"""A site's half of a job: a resident process in which every request goes to the site's desk."""

import contextlib
import os
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import FLContextKey, ReturnCode
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.apis.signal import Signal

from confrere.deploy.engine import SITE
from confrere.deploy.engine.controller import CONTENT, HELLO, TOPIC
from confrere.deploy.engine.orphans import end_with_parent
from confrere.deploy.tidying import JOB, JOBS, keep_newest


class SiteExecutor(Executor):
    """It takes no arguments: a job cannot say where a site's rows or its state are."""

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """When the job starts: open the desk."""
        if event_type != EventType.START_RUN:
            return
        from confrere.deploy.desk import Desk

        end_with_parent()
        tidy_up(fl_ctx)
        desk = Desk(Path(os.environ[SITE]))

        def answer(topic: str, request: Shareable, fl_ctx: FLContext) -> Shareable:
            reply = make_reply(ReturnCode.OK)
            reply[CONTENT] = desk.answer(request.get(CONTENT))
            return reply

        engine: Any = fl_ctx.get_engine()
        engine.register_aux_message_handler(TOPIC, answer)
        engine.register_aux_message_handler(HELLO, lambda topic, request, fl_ctx: make_reply(ReturnCode.OK))

    def execute(self, task_name: str, shareable: Shareable, fl_ctx: FLContext, abort_signal: Signal) -> Shareable:
        """There are no tasks."""
        return make_reply(ReturnCode.TASK_UNKNOWN)


def tidy_up(fl_ctx: FLContext) -> None:
    """Remove what old jobs left in the site's start-up folder; this one's stays, and starts whatever comes of it."""
    workspace: Any = fl_ctx.get_prop(FLContextKey.WORKSPACE_OBJECT)
    with contextlib.suppress(OSError):
        keep_newest(Path(workspace.get_root_dir()), JOB, JOBS, in_use=str(fl_ctx.get_job_id()))
