"""`confrere site`: one data holder's own commands. Its policy file wins over whatever a study asks for."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import for_people, print_json, status
from confrere.cli.hub import Announcer, needs_engine, only_one, until_stopped

if TYPE_CHECKING:
    from confrere.deploy.policy import Policy
    from confrere.deploy.study import Deployed

Folder = Annotated[Path, typer.Option("--folder", help="The site's own folder.", envvar="CONFRERE_SITE")]
app = typer.Typer(no_args_is_help=True, help="One data holder: join a hub, approve studies, take part in them.")

DATA_LINE = re.compile(r"""^([ \t]*data[ \t]*=[ \t]*)(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""", re.MULTILINE)
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
        from confrere.disk import write_whole

        if (folder / POLICY).exists():
            raise ValueError(f"{folder} holds a site already: choose another folder")
        with status("Making a key", hidden=json or quiet):
            made = site_request(folder, name, organisation, project)
        write_whole(folder / POLICY, TEMPLATE.format(name=name))
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
    json: inputs.Events = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Keep this site connected, until Ctrl-C or SIGTERM. Nothing runs before a study is approved."""
    with for_people():
        needs_engine()
        from confrere.deploy.engine.kits import kit_of, organisation_of
        from confrere.deploy.engine.processes import client
        from confrere.deploy.engine.reach import Reach, hub_of
        from confrere.deploy.policy import read_policy

        policy = read_policy(folder)
        kit = kit_of(folder / "kit", policy.name)
        already = f"the site in {folder} runs already: leave it, or stop it before it is started again"
        with only_one(folder, already):
            if data is not None:
                policy = remember_data(folder, data)
            if not policy.data.is_file():
                raise FileNotFoundError(f"there is no table {policy.data}: say --data, or mend {folder / 'site.toml'}")
            hub = hub_of(kit)
            resident, reach = client(kit, folder, organisation_of(kit)), Reach(folder / "client.log", hub)
            facts = {"site": policy.name, "host": hub[0], "port": hub[1]}
            told = Announcer(site_words(policy.name, f"{hub[0]}:{hub[1]}", folder), facts, json, quiet)
            mistakes = Mistakes(folder, json)

            def step() -> None:
                if resident.keep() and resident.process is not None:
                    reach.started(resident.process.pid)
                told.say(reach.state())
                mistakes.show_new()

            try:
                until_stopped(step)
            finally:
                resident.stop()


def site_words(name: str, hub: str, folder: Path) -> dict[str, str]:
    """What a site's operator is told when something changes."""
    return {
        "starting": f"{name} is trying to reach the hub at {hub}.",
        "connected": f"{name} is connected to the hub at {hub}. Next: confrere site approve --folder {folder}",
        "lost": f"{name} has lost the hub at {hub}, and goes on trying.",
        "again": f"{name} is connected again.",
        "refused": f"The hub at {hub} does not let {name} in: ask its operator whether it was revoked. "
        f"{folder / 'client.log'} says more.",
    }


class Mistakes:
    """Shows what goes wrong at a site, such as a table that cannot be read, as it is noted; once each."""

    def __init__(self, folder: Path, json: bool):
        self.folder, self.json = folder, json
        self.known = self.last()

    def last(self) -> dict[str, str]:
        """The newest one, without when and how often."""
        from confrere.deploy.logbook import troubles

        return {key: str(line[key]) for line in troubles(self.folder)[-1:] for key in ("study", "told", "truth")}

    def show_new(self) -> None:
        """The newest one, if it was not shown."""
        newest = self.last()
        if newest == self.known:
            return
        self.known = newest
        if self.json:
            print_json({"event": "trouble", **newest})
        else:
            print(f"Study {newest['study'][:12]}: {newest['truth']} (the hub was told: {newest['told']})")
        sys.stdout.flush()


def remember_data(folder: Path, data: Path) -> "Policy":
    """Write the path of a table that is there into the site's own file, and nothing else; the policy from now on.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "new.csv").write_text("a,b")
    >>> _ = (folder / "site.toml").write_text('[site]\\nname = "north"\\n  data = "old.csv"  # ours\\n')
    >>> remember_data(folder, folder / "new.csv").data.name
    'new.csv'
    >>> print((folder / "site.toml").read_text().splitlines()[2].replace(str(folder.resolve()), "..."))
      data = ".../new.csv"  # ours
    """
    from confrere.deploy.policy import POLICY, parsed_policy, read_policy
    from confrere.disk import write_whole
    from confrere.runs.template import in_quotes

    read_policy(folder)
    if not data.is_file():
        raise FileNotFoundError(f"there is no table {data}; {folder / POLICY} is as it was")
    line = in_quotes(str(data.resolve()))
    text = DATA_LINE.sub(lambda found: found[1] + line, (folder / POLICY).read_text(encoding="utf-8"), count=1)
    policy = parsed_policy(text.encode(), folder)
    if policy.data != data.resolve():
        raise ValueError(f"{folder / POLICY} has no line of its own for data: write `data = {line}` into its [site]")
    write_whole(folder / POLICY, text)
    return policy


@app.command("approve", epilog="Example: confrere site approve 3f2a9c --folder north")
def approve(
    study: Annotated[
        str | None, typer.Argument(help="The study's hash, or six characters of it or more.", show_default=False)
    ] = None,
    folder: Folder = Path("site"),
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take an approval back; it counts at once.")] = False,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Read the studies that were proposed, and approve one by its hash. One changed byte asks again."""
    with for_people():
        from confrere.deploy.named import the_one
        from confrere.deploy.policy import read_policy
        from confrere.deploy.study import study_of

        policy = read_policy(folder)
        studies = {hash: study_of(file.read_bytes(), file) for hash, file in policy.proposals().items()}
        if study is None:
            show_proposals(policy, studies, json)
            return
        chosen = studies[the_one(study, studies, f"that was proposed to {policy.name}")]
        if withdraw:
            policy.withdraw(chosen.hash)
        else:
            policy.approve(chosen)
        if json:
            print_json(facts_of(policy, chosen))
            return
        if not quiet:
            print("\n".join(page(policy, chosen)))
        print(f"{'No longer approved' if withdraw else 'Approved'}: {chosen.hash}")


def show_proposals(policy: "Policy", studies: dict[str, "Deployed"], json: bool) -> None:
    """All studies that were proposed, and what they would do here."""
    approved = policy.approved()
    if json:
        print_json([facts_of(policy, study) for study in studies.values()])
        return
    for hash, study in studies.items():
        print("\n".join([*page(policy, study), f"{'approved' if hash in approved else 'not approved'}: {hash}", ""]))
    print(f"{len(studies)} proposed. Approve one with: confrere site approve HASH --folder {policy.folder}")


def page(policy: "Policy", study: "Deployed") -> list[str]:
    """What a study would do here, and why this site will not take part, approved or not."""
    from confrere.deploy.policy import limits_against
    from confrere.deploy.telling import told

    against = limits_against(policy, study)
    warning = "This site will still not take part, approved or not, until site.toml allows it:"
    return [*told(study, policy.name), *([warning, *(f"  {words}" for words in against)] if against else [])]


def facts_of(policy: "Policy", study: "Deployed") -> dict[str, Any]:
    """The same for programs."""
    from confrere.deploy.policy import objections
    from confrere.deploy.telling import told

    part = study.said.study
    return {
        "study": study.hash, "approved": study.hash in policy.approved(), "objections": objections(policy, study),
        "algorithm": part.algorithm, "options": part.options, "rounds": part.rounds, "sites": list(study.names),
        "user": part.user, "all_receive_the_working_model": study.shows_the_working_model,
        "told": told(study, policy.name),
    }  # fmt: skip
