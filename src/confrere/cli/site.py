"""`confrere site`: one data holder's own commands. Its policy file wins over whatever a study asks for."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import for_people, print_json, status
from confrere.cli.hub import announce, needs_engine, until_stopped

Folder = Annotated[Path, typer.Option("--folder", help="The site's own folder.", envvar="CONFRERE_SITE")]
app = typer.Typer(no_args_is_help=True, help="One data holder: join a hub, approve studies, take part in them.")

TEMPLATE = """\
# What this site allows. It is read from this machine alone, and wins over whatever a study asks for.

[site]
name = "{name}"
data = "patients.csv"        # the table, from this folder; `confrere site start --data` changes it
state = "state"              # where private states and finished models are kept

[policy]
# algorithms = ["auto", "fedavg", "weight_erosion"]   # all that confrere knows, unless some are named
min_others = 2               # other sites that must take part
min_dilution = 0.2           # share of all rows that must be others'
max_rounds = 1000            # of one study, over all its runs
max_bytes = 10000000000      # of one study, over all its runs, sent and received
metrics = ["loss", "accuracy", "log_loss", "auroc", "brier", "rmse"]   # what may be told of a model's quality
min_group = 5                # nothing is told of fewer rows
share_sums = true            # counts and sums for a common scale may leave
require_privacy = false      # true: no study without differential privacy, which none can promise yet
"""


@app.command("request", epilog="Example: confrere site request north --folder north")
def request(
    name: Annotated[str, typer.Argument(help="The site's name: small letters, digits and hyphens.")],
    folder: Folder = Path("site"),
    organisation: Annotated[str, typer.Option(help="The organisation, for the certificate.")] = "hospital",
    project: Annotated[str, typer.Option(help="The hub's project.")] = "confrere",
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Ask to join a hub: makes this site's key, which never leaves this folder, and a request without it."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import site_request
        from confrere.deploy.policy import POLICY
        from confrere.deploy.study import SITE_NAME

        if not re.fullmatch(SITE_NAME, name):
            raise ValueError(f"a site's name has small letters, digits and hyphens, not {name!r}")
        if (folder / POLICY).exists():
            raise ValueError(f"{folder} holds a site already: choose another folder")
        with status("Making a key", hidden=json or quiet):
            made = site_request(folder, name, organisation, project)
        (folder / POLICY).write_text(TEMPLATE.format(name=name), encoding="utf-8")
        if json:
            print_json({"site": name, "request": str(made), "policy": str(folder / POLICY)})
            return
        if quiet:
            return
        print(f"Send {made} to the hub's operator; it holds no secret. Read {folder / POLICY}: it says what you allow.")
        print("Next, at the hub: confrere hub approve HUB " + made.name)


@app.command("install", epilog="Example: confrere site install north.signed.zip --folder north")
def install(
    signed: Annotated[Path, typer.Argument(help="The file that the hub's operator sent back.", show_default=False)],
    folder: Folder = Path("site"),
    fingerprint: Annotated[
        str | None, typer.Option(help="The hub's fingerprint, as its operator told you by another way.")
    ] = None,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Install the signed certificate, if it is by the hub whose fingerprint you confirm."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import site_install
        from confrere.deploy.policy import read_policy

        policy = read_policy(folder)
        told = fingerprint or typer.prompt("The hub's fingerprint, as its operator told you (SHA256:...)")
        site_install(folder, policy.name, signed, told.strip())
        if json:
            print_json({"site": policy.name, "installed": True})
            return
        if quiet:
            return
        print(f"{policy.name} can reach the hub. Next: confrere site start --folder {folder} --data patients.csv")


@app.command("start", epilog="Example: confrere site start --folder north --data patients.parquet")
def start(
    folder: Folder = Path("site"),
    data: Annotated[Path | None, typer.Option(help="This site's table (CSV or Parquet).", show_default=False)] = None,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Keep this site connected, until Ctrl-C or SIGTERM. Nothing runs before a study is approved."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import kit_of, organisation_of
        from confrere.deploy.engine.processes import client
        from confrere.deploy.policy import read_policy

        if data is not None:
            remember_data(folder, data)
        policy = read_policy(folder)
        if not policy.data.is_file():
            raise FileNotFoundError(f"there is no table {policy.data}: say --data, or mend {folder / 'site.toml'}")
        kit = kit_of(folder / "kit", policy.name)
        resident = client(kit, folder, organisation_of(kit))
        next_step = f"confrere site approve --folder {folder}"
        announce({"site": policy.name}, f"{policy.name} stays connected to the hub", next_step, json, quiet)
        try:
            until_stopped(resident.keep)
        finally:
            resident.stop()


def remember_data(folder: Path, data: Path) -> None:
    """Write the path of the table into the site's own file."""
    from confrere.deploy.policy import POLICY, read_policy
    from confrere.disk import write_whole
    from confrere.runs.template import in_quotes

    read_policy(folder)
    text = (folder / POLICY).read_text(encoding="utf-8")
    line = f"data = {in_quotes(str(data.resolve()))}"
    write_whole(folder / POLICY, re.sub(r"^data\s*=.*$", lambda _: line, text, count=1, flags=re.MULTILINE))


@app.command("approve", epilog="Example: confrere site approve 3f2a9c --folder north")
def approve(
    study: Annotated[str | None, typer.Argument(help="The study's hash, or its beginning.", show_default=False)] = None,
    folder: Folder = Path("site"),
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take an approval back; it counts at once.")] = False,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read the studies that were proposed, and approve one by its hash. One changed byte asks again."""
    with for_people():
        from confrere.deploy.policy import read_policy
        from confrere.deploy.study import study_of
        from confrere.deploy.telling import told

        policy = read_policy(folder)
        studies = {hash: study_of(file.read_bytes(), file) for hash, file in policy.proposals().items()}
        if study is None:
            show_proposals(policy, studies, json)
            return
        found = [hash for hash in studies if hash.startswith(study)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} of the studies that were proposed begin with {study!r}")
        chosen = studies[found[0]]
        if withdraw:
            policy.withdraw(chosen.hash)
        else:
            policy.approve(chosen)
        if json:
            print_json({"study": chosen.hash, "approved": not withdraw})
            return
        if not quiet:
            print("\n".join(told(chosen, policy.name)))
        print(f"{'No longer approved' if withdraw else 'Approved'}: {chosen.hash}")


def show_proposals(policy: Any, studies: dict[str, Any], json: bool) -> None:
    """All studies that were proposed, and what they would do here."""
    from confrere.deploy.policy import objections
    from confrere.deploy.telling import told

    approved = policy.approved()
    if json:
        print_json(
            [{"study": h, "approved": h in approved, "objections": objections(policy, s)} for h, s in studies.items()]
        )
        return
    for hash, study in studies.items():
        print(
            "\n".join([*told(study, policy.name), f"{'approved' if hash in approved else 'not approved'}: {hash}", ""])
        )
    print(f"{len(studies)} proposed. Approve one with: confrere site approve HASH --folder {policy.folder}")
