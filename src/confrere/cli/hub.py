"""`confrere hub`: where sites meet. Its operator makes it, lets sites in, and keeps it running."""

import signal
import sys
import time
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
        print(f"Next, at {name}: confrere site install {signed.name} --fingerprint {read_hub(folder).fingerprint}")


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
def start(folder: HubFolder, json: inputs.Json = False, quiet: inputs.Quiet = False) -> None:
    """Keep the hub running, until Ctrl-C or SIGTERM. A study that was interrupted goes on by itself."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import keep_out, kit_of
        from confrere.deploy.engine.processes import server
        from confrere.deploy.engine.supervisor import Supervisor
        from confrere.deploy.stations import read_hub

        about = read_hub(folder)
        kit = kit_of(folder / "kits", about.host)
        keep_out(kit, folder)
        resident, supervisor = server(kit, folder), Supervisor(folder)
        next_step = f"confrere deploy study.toml --hub {folder}"
        announce({"host": about.host, "port": about.port}, f"The hub listens on {about.host}:{about.port}", next_step,
                 json, quiet)  # fmt: skip
        try:
            until_stopped(lambda: (resident.keep() and supervisor.forget(), supervisor.step()))
        finally:
            supervisor.close()
            resident.stop()


def until_stopped(step) -> None:
    """Do something about once a second, until this process is told to end."""
    going = [True]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: going.clear())
    while going:
        step()
        time.sleep(0.5)


def announce(facts: dict[str, object], words: str, next_step: str, json: bool, quiet: bool) -> None:
    """Say at once that something has started."""
    if json:
        print_json(facts)
    elif not quiet:
        print(f"{words}. Next: {next_step}")
    sys.stdout.flush()


def needs_engine() -> None:
    """Say what to install where the engine is absent."""
    from importlib.util import find_spec

    if find_spec("nvflare") is None:
        raise ValueError("hubs and sites need NVIDIA FLARE: pip install 'confrere[deploy]'")
