"""Sites that the hub shuts out, by name: they are asked for nothing, and the engine lets them in no more.

revoked.json, in the hub's folder: site -> when. A running study heeds it from its next request on.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from confrere.deploy.exchange import Errors, Exchange, Replies
from confrere.disk import write_whole

REVOKED = "revoked.json"
SAID = "the hub has revoked it"


def revoked_sites(hub: Path) -> dict[str, str]:
    """The sites that are shut out, and since when."""
    path = hub / REVOKED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def revoke(hub: Path, site: str) -> None:
    """Shut a site out.

    >>> import pathlib, tempfile
    >>> hub = pathlib.Path(tempfile.mkdtemp())
    >>> revoke(hub, "north")
    >>> list(revoked_sites(hub))
    ['north']
    >>> readmit(hub, "north")
    >>> revoked_sites(hub)
    {}
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    write_whole(hub / REVOKED, json.dumps({**revoked_sites(hub), site: now}, indent=1))


def readmit(hub: Path, site: str) -> None:
    """Let a site in again, with the certificate that it has."""
    left = {name: when for name, when in revoked_sites(hub).items() if name != site}
    write_whole(hub / REVOKED, json.dumps(left, indent=1))


def without_revoked(exchange: Exchange, revoked: Callable[[], Mapping[str, str]]) -> Exchange:
    """The same exchange, in which sites that are shut out are sent nothing."""

    def asked(requests: Mapping[str, bytes], deadline: float, enough: int | None = None) -> tuple[Replies, Errors]:
        out = revoked()
        let = {site: request for site, request in requests.items() if site not in out}
        replies, errors = exchange(let, deadline, enough)
        return replies, {**errors, **{site: SAID for site in requests if site in out}}

    return asked
