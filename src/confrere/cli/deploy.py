"""`confrere deploy`, `status`, `stop`, `fetch`: a study across machines, seen from the hub, and its model at a site."""

import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json
from confrere.cli.hub import Hub
from confrere.cli.site import Folder
from confrere.plural import plural

StudyName = Annotated[
    str, typer.Argument(help="The study's hash, or six characters of it or more.", show_default=False)
]
GOOD = ("finished",)


def deploy(
    study: Annotated[Path, typer.Argument(help="A study.toml that names sites.", show_default=False)],
    hub: Hub = Path("hub"),
    wait: Annotated[bool, typer.Option(help="Show the rounds until it is over; else only ask for it.")] = True,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Run a study across the sites that it names, or go on with it.

    Sites whose operators have not approved this very file refuse; say the same command again when they have.
    """
    with for_people():
        from confrere.deploy.stations import read_hub, standing, trouble_of, want_study
        from confrere.deploy.study import read_study

        read_hub(hub)
        asked = read_study(study)
        folder = want_study(hub, asked)
        if wait:
            watch(folder, asked.names, asked.said.study.rounds, hidden=json or quiet)
        found, trouble = standing(folder), trouble_of(hub)
        if json:
            print_json({**found, "hub": trouble or "runs"})
        else:
            show_standing(found)
            if trouble and not wait:
                print(f"But {trouble}.")
        if wait and found["event"] not in GOOD:
            raise typer.Exit(1)


def watch(folder: Path, sites: tuple[str, ...], rounds: int, hidden: bool, seen: int | None = None) -> None:
    """Show the journal's lines as they come, until the study is over; by default from the last that is there.

    While the hub does not run that is said, also if the lines are hidden: on standard error.
    """
    from confrere.deploy.journal import read_journal
    from confrere.deploy.stations import is_over, trouble_of

    seen = max(0, len(read_journal(folder)) - 1) if seen is None else seen
    troubles = Troubles()
    while True:
        over = is_over(folder)
        lines = read_journal(folder)
        for line in lines[seen:]:
            if not hidden:
                show_line(line, sites, rounds)
        seen = len(lines)
        if over:
            return
        troubles.tell(trouble_of(folder.parent.parent))
        time.sleep(0.2)


class Troubles:
    """Says on standard error what keeps a study waiting, once it has lasted for a moment, and when that is over."""

    def __init__(self, now: Callable[[], float] = time.monotonic, patience: float = 3.0):
        self.now, self.patience = now, patience
        self.since, self.told = now(), ""

    def tell(self, trouble: str | None) -> None:
        """What it is now, if anything."""
        if trouble is None:
            if self.told:
                print("The hub runs again.", file=sys.stderr, flush=True)
            self.since, self.told = self.now(), ""
        elif trouble != self.told and self.now() - self.since >= self.patience:
            self.told = trouble
            print(f"Waiting: {trouble}.", file=sys.stderr, flush=True)


def show_line(line: dict[str, Any], sites: tuple[str, ...], rounds: int) -> None:
    """One event, in words."""
    for said in words_of(line, sites, rounds):
        print(said, flush=True)


def words_of(line: dict[str, Any], sites: tuple[str, ...], rounds: int) -> list[str]:
    """One event, in words.

    >>> facts = {"metrics": {"a": {"loss": 0.5}}, "bytes": 1200, "seconds": 0.02, "errors": {}, "refused": []}
    >>> line = {"event": "round", "round": 3, "answered": ["a", "b"], "weights": [[90, 30]], **facts}
    >>> words_of(line, ("a", "b"), 10)
    ['round 3 of 10: a, b answered; weights a 0.75, b 0.25; losses a 0.5000; 1,200 bytes, 0.02 s']
    """
    if line["event"] == "opened":
        taking = ", ".join(f"{name} ({plural(size, 'row')})" for name, size in sorted(line["sites"].items()))
        return [f"taking part: {taking}", *refusals(line, "  {site} does not: {why}")]
    if line["event"] in ("round", "abandoned"):
        return round_in_words(line, sites, rounds)
    if line["event"] == "refused":
        return refusals(line, "{site} does not take part: {why}")
    return [f"{line['event']}{': ' + line['why'] if 'why' in line else ''}"]


def refusals(line: dict[str, Any], words: str) -> list[str]:
    """Who takes no part, and why; a name with a blank is no site's, but stands for all tables.

    >>> refusals({"refuses": {"the tables": ["one class"], "north": ["busy"]}}, "{site} does not: {why}")
    ['the tables do not go together: one class', 'north does not: busy']
    """
    together = "{site} do not go together: {why}"
    return [
        (together if " " in site else words).format(site=site, why="; ".join(why))
        for site, why in line["refuses"].items()
    ]


def round_in_words(line: dict[str, Any], sites: tuple[str, ...], rounds: int) -> list[str]:
    """A round: who answered, weights, losses and bytes; then what went wrong."""
    weights = line.get("weights") or []
    losses = {site: found["loss"] for site, found in line["metrics"].items() if "loss" in found}
    parts = [
        f"round {line['round']} of {rounds}: {', '.join(line['answered']) or 'nobody'} answered",
        *([f"abandoned: {line['why']}"] if line["event"] == "abandoned" else []),
        *([f"weights {listed(zip(sites, shares_of(weights[0]), strict=True), '.2g')}"] if len(weights) == 1 else []),
        *([f"losses {listed(losses.items(), '.4f')}"] if losses else []),
        f"{line['bytes']:,} bytes, {line['seconds']:.2f} s",
    ]
    wrong = [f"  {site}: {why}" for site, why in line["errors"].items()]
    wrong += [f"  a message of {e['site']} was refused ({e['why']}): {e['said']}" for e in line["refused"]]
    return ["; ".join(parts), *wrong]


def shares_of(weights: list[float]) -> list[float]:
    """Weights as shares of their sum."""
    total = sum(weights)
    return [weight / total if total > 0 else 0.0 for weight in weights]


def listed(values: Iterable[tuple[str, float]], digits: str) -> str:
    """Numbers by site."""
    return ", ".join(f"{site} {value:{digits}}" for site, value in values)


def show_standing(found: dict[str, Any]) -> None:
    """Where a study stands, and what to do next."""
    name = found["study"][:12]
    print(f"Study {name}: {state_of(found)} after round {found['round']}, {len(found['sites'])} sites, "
          f"{found['refused']} messages refused, {found['abandoned']} rounds abandoned.")  # fmt: skip
    if found["event"] == "finished":
        metrics = found["last"].get("metrics", {})
        for site, values in sorted(metrics.items()):
            print(f"  {site}: {', '.join(f'{metric} {value:.3f}' for metric, value in values.items())} (no interval)")
        print(f"Next, at a site: confrere fetch {name} --folder SITE --out model")
    elif found["event"] == "refused" and not found["asked_again"]:
        print(f"Next: {'; '.join(remedies(name, found['refuses']))}; then deploy again.")


def state_of(found: Mapping[str, Any]) -> str:
    """Where a study stands, in a word or two.

    >>> state_of({"event": "finished", "asked_again": True, "stopping": False})
    'finished, asked again'
    """
    more = [word for word, said in (("asked again", "asked_again"), ("stopping", "stopping")) if found[said]]
    return ", ".join([found["event"], *more])


def remedies(name: str, refuses: Mapping[str, list[str]]) -> list[str]:
    """What is to be done about refusals, by their reasons.

    >>> from confrere.deploy.policy import NOT_APPROVED
    >>> remedies("3f2a9c", {"ash": [NOT_APPROVED], "elm": ["20 rounds are more than the 5 that this site allows"]})
    ['at ash, read and approve it (confrere site approve 3f2a9c)', 'mend what elm says, or change the study']
    """
    from confrere.deploy.desk import WITHDRAWN
    from confrere.deploy.policy import NOT_APPROVED

    asked = {site: [why.startswith((NOT_APPROVED, WITHDRAWN)) for why in words] for site, words in refuses.items()}
    waiting = sorted(site for site, found in asked.items() if any(found))
    others = sorted(site for site, found in asked.items() if not all(found) and site != "hub")
    return [
        *([f"at {', '.join(waiting)}, read and approve it (confrere site approve {name})"] if waiting else []),
        *([f"mend what {', '.join(others)} says, or change the study"] if others else []),
        *(["change the study, or the tables, so that they go together"] if "hub" in refuses else []),
    ] or ["see the journal"]


def status(
    study: Annotated[str | None, typer.Argument(help="Only this study, by its hash.", show_default=False)] = None,
    hub: Hub = Path("hub"),
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """All studies of a hub, and where they stand; whether the hub runs, and which sites are connected."""
    with for_people():
        from rich.table import Column, Table

        from confrere.deploy.stations import (
            connected_sites,
            find_study,
            known_studies,
            read_hub,
            standing,
            study_folder,
            trouble_of,
        )  # fmt: skip

        read_hub(hub)
        asked = known_studies(hub) if study is None else [find_study(hub, study)]
        found, trouble = [standing(study_folder(hub, hash)) for hash in asked], trouble_of(hub)
        if json:
            print_json([{**one, "hub": trouble or "runs"} for one in found])
            return
        table = Table("Study", Column("State", no_wrap=True), "Round", "Sites", "Do not take part", "Refused messages")
        for one in found if not quiet else [one for one in found if state_of(one) != "finished"]:
            cells = (
                one["study"][:12],
                state_of(one),
                one["round"],
                len(one["sites"]),
                len(one["refuses"]),
                one["refused"],
            )
            table.add_row(*map(str, cells))
        console().print(table)
        if trouble:
            print(f"{trouble[0].upper()}{trouble[1:]}.")
        elif not quiet:
            print(f"Connected: {', '.join(connected_sites(hub)) or 'no site'}.")


def stop(study: StudyName, hub: Hub = Path("hub"), json: inputs.Json = False, quiet: inputs.Quiet = False) -> None:
    """Stop a study, after the round if one is running; `confrere deploy` goes on with it."""
    with for_people():
        from confrere.deploy.stations import find_study, is_over, read_hub, stop_study, study_folder

        read_hub(hub)
        hash = find_study(hub, study)
        folder = study_folder(hub, hash)
        was_over, state = is_over(folder), stop_study(folder)
        if json:
            print_json({"study": hash, "stopping": state == "stopping", "event": state})
        elif not quiet:
            print(f"Study {hash[:12]} {stopped_in_words(state, was_over)}.")


def stopped_in_words(state: str, was_over: bool) -> str:
    """What became of a study that was to stop."""
    if state == "stopping":
        return "stops after the round that is running"
    if was_over:
        return f"is over already ({state}): there is nothing to stop"
    return "is stopped; no round was running" if state == "stopped" else f"stays as it was ({state})"


def fetch(
    study: StudyName,
    out: Annotated[Path, typer.Option(help="The folder for the model.", show_default=False)],
    folder: Folder = Path("site"),
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """At a site: its own finished model, with its card and a report on it. No other site can have them."""
    with for_people():
        from confrere.deploy.finished import finished_models
        from confrere.deploy.named import the_one
        from confrere.deploy.policy import read_policy
        from confrere.deploy.report import site_contents
        from confrere.report import write_report
        from confrere.runs.report import PAGE
        from confrere.saved import load_model

        policy = read_policy(folder)
        found = finished_models(policy.state)
        try:
            model = found[the_one(study, found, f"that is finished at {policy.name}")]
        except FileNotFoundError as problem:
            why = f"{policy.name} has no finished model of study {study}: is the study over, and for it?"
            raise FileNotFoundError(f"{why} ({problem})") from None
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise ValueError(f"{out} is there already: choose another folder")
        saved = load_model(model)
        contents = site_contents(model.parent, policy)  # before anything is written
        shutil.copytree(model, out, dirs_exist_ok=True)
        page = write_report(contents, out / PAGE)
        user = saved.manifest["user"]
        if json:
            print_json({"folder": str(out), "report": str(page), "user": user, "test": saved.manifest["test"]})
        elif not quiet:
            print(f"The model of {user} is in {out}, with a report: {page}")
            print(f"Next: confrere predict {out} new-patients.csv")
