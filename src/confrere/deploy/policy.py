"""`site.toml`: what a site allows. It is read from the site's own disk and wins over whatever a study asks for.

    [site]      its name, its rows and where it keeps its state: local paths, never from a study
    [policy]    which algorithms, among how many others, how long, how much, and what may leave

A study runs at a site only after its operator approved that study's hash; the approvals are a file of their own.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from confrere.deploy.study import Deployed, SiteName, known_algorithms
from confrere.disk import write_whole
from confrere.models import METRICS
from confrere.plural import plural
from confrere.runs.config import Count, Part, parsed, validated

POLICY, APPROVED, PROPOSED = "site.toml", "approved.json", "proposed"
NOT_APPROVED = "its operator has not approved this study"
MEND_APPROVED = "mend it, or move it away, and approve again what is to run; until then nothing runs here"
MEASURES = ("loss", *METRICS)  # `loss`: that of the training rows


USUAL_METRICS = ("loss", "accuracy", "log_loss", "auroc", "brier", "rmse")


class SiteTable(Part):
    """[site]: who this is, and where its rows and its state are."""

    name: SiteName
    data: str
    state: str = "state"


class PolicyTable(Part):
    """[policy]: what is allowed."""

    algorithms: list[str] = Field(default_factory=lambda: list(known_algorithms()))
    min_others: Annotated[int, Field(ge=0)] = 2
    min_dilution: Annotated[float, Field(ge=0, le=1)] = 0.2
    max_rounds: Count = 1000
    max_bytes: Count = 10_000_000_000
    metrics: list[str] = Field(default_factory=lambda: list(USUAL_METRICS))
    min_group: Count = 5
    share_sums: bool = True
    require_privacy: bool = False


class SiteFile(Part):
    """The whole file."""

    site: SiteTable
    policy: PolicyTable = PolicyTable()


class Policy(NamedTuple):
    """A site's policy, and the folder that its paths are taken from."""

    said: SiteFile
    folder: Path

    @property
    def name(self) -> str:
        """The site's name."""
        return self.said.site.name

    @property
    def data(self) -> Path:
        """The site's table."""
        return self.folder / self.said.site.data

    @property
    def state(self) -> Path:
        """Where the site keeps its private states and finished models."""
        return self.folder / self.said.site.state

    def approved(self) -> dict[str, Any]:
        """The hashes of the studies that the operator approved, and when."""
        path = self.folder / APPROVED
        if not path.is_file():
            return {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as problem:
            raise ValueError(f"{path} is broken ({problem}): {MEND_APPROVED}") from problem
        if not isinstance(found, dict):
            raise ValueError(f"{path} is broken (it is no table of hashes): {MEND_APPROVED}")
        return found

    def approve(self, study: Deployed) -> None:
        """Allow a study, by its hash."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        write_whole(self.folder / APPROVED, json.dumps({**self.approved(), study.hash: now}, indent=1))

    def withdraw(self, hash: str) -> None:
        """Allow a study no more."""
        left = {known: when for known, when in self.approved().items() if known != hash}
        write_whole(self.folder / APPROVED, json.dumps(left, indent=1))

    def proposals(self) -> dict[str, Path]:
        """The studies that were proposed to this site, by hash, oldest first."""
        place = self.folder / PROPOSED
        files = sorted(place.glob("*.toml"), key=lambda file: file.stat().st_mtime) if place.is_dir() else []
        return {file.stem: file for file in files}

    def propose(self, study: Deployed, most: int = 50) -> None:
        """Keep a study for the operator to read; of too many the oldest go."""
        place = self.folder / PROPOSED
        place.mkdir(parents=True, exist_ok=True)
        if not (place / f"{study.hash}.toml").is_file():
            write_whole(place / f"{study.hash}.toml", study.content)
        for hash, file in list(self.proposals().items())[:-most]:
            if hash not in self.approved():
                file.unlink(missing_ok=True)


def read_policy(folder: Path) -> Policy:
    """The policy of the site in a folder."""
    file = folder / POLICY
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}: `confrere site request` makes one")
    return parsed_policy(file.read_bytes(), folder)


def parsed_policy(content: bytes, folder: Path) -> Policy:
    """The policy that some bytes say, for the site in a folder."""
    file = folder / POLICY
    found, text = parsed(content, file)
    said = validated(SiteFile, found, text, file)
    for what, given, known in (
        ("algorithms", said.policy.algorithms, known_algorithms()),
        ("metrics", said.policy.metrics, MEASURES),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"{file}: policy.{what}: there is no {unknown[0]!r}; there is {', '.join(known)}")
    return Policy(said, folder)


def objections(policy: Policy, study: Deployed) -> list[str]:
    """Why this site does not take part in a study, as far as the study alone tells; empty: it does."""
    found = limits_against(policy, study)
    if study.hash not in policy.approved():
        found.append(f"{NOT_APPROVED}: confrere site approve {study.hash[:12]}")
    return found


def limits_against(policy: Policy, study: Deployed) -> list[str]:
    """What site.toml has against a study, whether it is approved or not."""
    allowed, part, data = policy.said.policy, study.said.study, study.said.data
    found: list[str] = []
    if allowed.require_privacy:
        found.append("this site requires differential privacy, which no study can promise yet")
    if policy.name not in part.sites:
        found.append(f"the study does not name {policy.name}")
    if part.algorithm not in allowed.algorithms:
        found.append(f"this site does not allow {part.algorithm}")
    if part.rounds > allowed.max_rounds:
        found.append(f"{part.rounds} rounds are more than the {allowed.max_rounds} that this site allows")
    others = len(set(part.sites) - {policy.name})
    if others < allowed.min_others:
        found.append(f"the study has {plural(others, 'other site')}, and this site wants {allowed.min_others} at least")
    if data.min_level < allowed.min_group:
        found.append(
            f"min_level is {data.min_level}, and this site tells nothing of fewer than {allowed.min_group} rows"
        )
    if data.scale == "shared" and not allowed.share_sums:
        found.append('this site shares no sums for a common scale: the study must say scale = "silo"')
    return found


def company(policy: Policy, rows: int, sizes: Mapping[str, int]) -> list[str]:
    """Why this site does not take part with these others, by what the hub says of their numbers of rows."""
    allowed = policy.said.policy
    others = {name: size for name, size in sizes.items() if name != policy.name and size > 0}
    found: list[str] = []
    if len(others) < allowed.min_others:
        takes = "takes" if len(others) == 1 else "take"
        found.append(
            f"{plural(len(others), 'other site')} {takes} part, and this site wants {allowed.min_others} at least"
        )
    dilution = sum(others.values()) / max(1, sum(others.values()) + rows)
    if dilution < allowed.min_dilution:
        found.append(
            f"the others have {dilution:.0%} of all rows, and this site wants {allowed.min_dilution:.0%} at least"
        )
    return found


def allowed_metrics(policy: Policy, rows: int, metrics: Mapping[str, float]) -> dict[str, float]:
    """Of what was measured on so many rows, what may leave: what the policy names, and nothing of a small group."""
    if rows < policy.said.policy.min_group:
        return {}
    return {name: value for name, value in metrics.items() if name in policy.said.policy.metrics}
