"""`confrere hub`: where sites meet. Its operator makes it, lets sites in, and keeps it running."""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from confrere.cli import inputs
from confrere.cli.common import for_people, print_json, status

HubFolder = Annotated[Path, typer.Argument(help="The hub's folder.", show_default=False)]
Hub = Annotated[Path, typer.Option("--hub", help="The hub's folder.", envvar="CONFRERE_HUB")]
app = typer.Typer(no_args_is_help=True, help="Where sites meet: make a hub, let sites in, keep it running.")


@app.command("init", epilog="Example: confrere hub init hub --host hub.example.org")
def init(
    folder: HubFolder,
    host: Annotated[str, typer.Option(help="The name under which sites reach this machine.")] = "localhost",
    port: Annotated[int, typer.Option(help="The one port that must be open, for sites and for the hub itself.")] = 8002,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Make a hub: a certificate authority of its own, and the hub's certificates."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import hub_init

        with status("Making certificates", hidden=json or quiet):
            about = hub_init(folder, host, port)
        if json:
            print_json(about._asdict() | {"folder": str(folder)})
            return
        if quiet:
            return
        print(f"The hub is in {folder}. Its fingerprint, which sites must be told by telephone or letter:")
        print(f"  {about.fingerprint}")
        print(f"Next, at every site: confrere site request NAME --folder NAME; here: confrere hub start {folder}")


@app.command("approve", epilog="Example: confrere hub approve hub north.request.zip")
def approve(
    folder: HubFolder,
    request: Annotated[Path, typer.Argument(help="The file that a site sent.", show_default=False)],
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Let a site in: sign its request. The others need not do anything."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import hub_approve
        from confrere.deploy.stations import read_hub

        name, signed = hub_approve(folder, request)
        if json:
            print_json({"site": name, "signed": str(signed)})
            return
        if quiet:
            return
        print(f"{name} may join. Send back {signed}, which holds no secret.")
        print(
            f"Next, at {name}: confrere site install {signed.name} --folder {name} "
            f"--fingerprint {read_hub(folder).fingerprint}"
        )


@app.command("revoke", epilog="Example: confrere hub revoke hub north")
def revoke(
    folder: HubFolder,
    site: Annotated[str, typer.Argument(help="The site's name.", show_default=False)],
    undo: Annotated[
        bool, typer.Option("--undo", help="Let the site in again, with the certificate that it has.")
    ] = False,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Shut a site out, by its name: it is asked for nothing from the next request on, and can connect no more."""
    with for_people():
        from confrere.deploy.revoked import readmit, revoke, revoked_sites
        from confrere.deploy.stations import read_hub

        read_hub(folder)
        known = {path.name.removesuffix(".signed.zip") for path in (folder / "requests").glob("*.signed.zip")}
        if site not in known:
            raise ValueError(f"the hub let no site {site!r} in; it let in {', '.join(sorted(known)) or 'none'}")
        if undo:
            readmit(folder, site)
        else:
            revoke(folder, site)
        if json:
            print_json({"site": site, "revoked": not undo, "all": revoked_sites(folder)})
        elif not quiet:
            print(f"{site} {'may join again' if undo else 'is shut out'}; a hub that runs heeds it at once.")


@app.command("start", epilog="Example: confrere hub start hub")
def start(folder: HubFolder, json: inputs.Events = False, quiet: inputs.Quiet = False) -> None:
    """Keep the hub running, until Ctrl-C or SIGTERM. A study that was interrupted goes on by itself."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import keep_out, kit_of
        from confrere.deploy.engine.processes import server
        from confrere.deploy.engine.reach import CONNECTED, TRYING, check_free
        from confrere.deploy.engine.supervisor import Supervisor
        from confrere.deploy.stations import read_hub

        about = read_hub(folder)
        kit = kit_of(folder / "kits", about.host)
        with only_one(folder, f"the hub in {folder} runs already: leave it, or stop it before it is started again"):
            check_free(about.host, about.port, folder)
            keep_out(kit, folder)
            resident, supervisor = server(kit, folder), Supervisor(folder)
            told = Announcer(hub_words(about.host, about.port, folder), about._asdict(), json, quiet)
            told.say(TRYING)

            def step() -> None:
                if resident.keep():
                    supervisor.forget()
                supervisor.step()
                told.say(CONNECTED if supervisor.answers else TRYING)

            try:
                until_stopped(step)
            finally:
                supervisor.close()
                resident.stop()


def hub_words(host: str, port: int, folder: Path) -> dict[str, str]:
    """What the hub's operator is told when something changes."""
    return {
        "starting": f"The hub is starting on {host}:{port}.",
        "connected": f"The hub listens on {host}:{port}. Next: confrere deploy study.toml --hub {folder}",
        "lost": f"The hub's engine does not answer any more; it is tried again. {folder / 'server.log'} says why.",
        "again": f"The hub listens on {host}:{port} again.",
    }


@contextlib.contextmanager
def only_one(folder: Path, otherwise: str) -> Iterator[None]:
    """Be the only process that runs what is in a folder; a moment is waited for one that ends."""
    from confrere.deploy.stations import alone_in

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(alone_in(folder, 2.0))
        except BlockingIOError as problem:
            raise ValueError(otherwise) from problem
        yield


def until_stopped(step: Callable[[], object]) -> None:
    """Do something about twice a second, until this process is told to end."""
    going = [True]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: going.clear())
    while going:
        step()
        time.sleep(0.5)


class Announcer:
    """Says what has changed, and only then: in words, or as lines of JSON with the event and some facts."""

    def __init__(self, words: Mapping[str, str], facts: Mapping[str, object], json: bool, quiet: bool):
        self.words, self.facts, self.json, self.quiet = words, facts, json, quiet
        self.state, self.was_connected = "", False

    def say(self, state: str) -> None:
        """The state is now this one."""
        if state == self.state:
            return
        self.state = state
        event = {
            "trying": "lost" if self.was_connected else "starting",
            "connected": "again" if self.was_connected else "connected",
        }.get(state, state)
        self.was_connected = self.was_connected or state == "connected"
        if self.json:
            print_json({"event": event, **self.facts})
        elif not self.quiet or event in ("lost", "refused"):
            print(self.words[event])
        sys.stdout.flush()


def needs_engine() -> None:
    """Say what to install where the engine is absent."""
    from importlib.util import find_spec

    if find_spec("nvflare") is None:
        raise ValueError("hubs and sites need NVIDIA FLARE: pip install 'confrere[deploy]'")
