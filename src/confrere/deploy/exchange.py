"""The narrow door to an engine: requests by site -> replies and errors by site. All else is free of any engine.

    exchange({site: bytes}, deadline, enough) -> ({site: bytes}, {site: error})

It returns when everybody has answered or failed, when `enough` have answered, or after `deadline` seconds; whoever has
not answered by then is among the errors. A site that is still at work on an earlier request is not asked another: its
requests would pile up.
"""

import concurrent.futures
import time
from collections.abc import Callable, Mapping
from typing import Protocol

Replies = dict[str, bytes]
Errors = dict[str, str]
Pending = dict[str, concurrent.futures.Future[bytes]]
TIMEOUT = "no answer before the deadline"
BUSY = "it is still at work on an earlier request"
UNREACHABLE = "it cannot be reached"
DISK = "its disk"
ENGINES = (TIMEOUT, BUSY, UNREACHABLE)  # what only the hub's end can know
PASSING = (*ENGINES, DISK)


def may_pass(words: str) -> bool:
    """Whether what went wrong at a site may be over soon without anybody's doing anything about the study."""
    return words.startswith(PASSING)


class Exchange(Protocol):
    """What an engine must do."""

    def __call__(
        self, requests: Mapping[str, bytes], deadline: float, enough: int | None = None
    ) -> tuple[Replies, Errors]: ...


def gathered(
    ask: Callable[[str, bytes, float], bytes],
    pool: concurrent.futures.Executor,
    requests: Mapping[str, bytes],
    deadline: float,
    enough: int | None = None,
    before: Pending | None = None,
) -> tuple[Replies, Errors]:
    """An exchange from a function that asks one site and waits: one thread each; what it raises is the site's error.

    `before`: requests of earlier exchanges that sites may still be at work on; it is brought up to date.
    """
    earlier: Pending = {site: future for site, future in (before or {}).items() if not future.done()}
    errors: Errors = {site: BUSY for site in requests if site in earlier}
    asked = {
        pool.submit(ask, site, request, deadline): site for site, request in requests.items() if site not in errors
    }
    ends = time.monotonic() + deadline
    replies: Replies = {}
    pending = set(asked)
    while pending and not (enough is not None and len(replies) >= enough):
        left = ends - time.monotonic()
        done, pending = concurrent.futures.wait(pending, max(0, left), concurrent.futures.FIRST_COMPLETED)
        if not done:
            break
        for future in done:
            problem = future.exception()
            if problem is None:
                replies[asked[future]] = future.result()
            else:
                errors[asked[future]] = str(problem) or type(problem).__name__
    late = {asked[future]: future for future in pending}
    if before is not None:
        before.clear()
        before |= earlier | late
    return replies, errors | dict.fromkeys(late, TIMEOUT)


class InProcess:
    """Sites in the same process, for tests and rehearsals: the very bytes, and no network; one after the other."""

    def __init__(self, answers: Mapping[str, Callable[[bytes], bytes]]):
        self.answers = dict(answers)

    def __call__(
        self, requests: Mapping[str, bytes], deadline: float, enough: int | None = None
    ) -> tuple[Replies, Errors]:
        replies: Replies = {}
        errors: Errors = {}
        for site, request in requests.items():
            if site not in self.answers:
                errors[site] = UNREACHABLE
            elif enough is not None and len(replies) >= enough:
                errors[site] = TIMEOUT
            else:
                try:
                    replies[site] = self.answers[site](request)
                except Exception as problem:  # whatever goes wrong in a site is an error of that site
                    errors[site] = str(problem)
        return replies, errors
