"""A study that is deployed: one file, whose hash is its name. Sites read the very bytes that their operators approved.

[data]           how every site reads its own table: the label, which columns, how they are scaled
[derive]         columns made from others
[study]          which sites, which algorithm with which numbers, for whom, how many rounds
[terms]          when a round is over, and when it counts
"""

import hashlib
import inspect
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import jax
from pydantic import Field

from confrere import algorithms, models
from confrere.checks import WrongField
from confrere.data.choose import Choice
from confrere.data.intake.options import did_you_mean
from confrere.deploy.agreed import Agreed
from confrere.deploy.hub import Terms
from confrere.models import Model
from confrere.plural import plural
from confrere.prior import resolved
from confrere.recipe import Recipe
from confrere.runs.config import ColumnsPart, Count, Part, parsed, told_with_line, validated
from confrere.simulation.inputs import check_prior
from confrere.transforms import compression_named

Value = bool | int | float | str | list[str] | list[int] | dict[str, float | int]
FOR_ALL = ("weight_erosion", "waffle", "data_interpolation")  # everybody receives the working model of one site
AS_THEY_ARE = ("auto", "evidence", "local", "ridge_local")  # sums that are sent once, and what sends nothing
SITE_NAME = r"^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$"  # what certificates and folders can bear
SiteName = Annotated[str, Field(pattern=SITE_NAME)]
MOST_BYTES = 1 << 20


class Columns(ColumnsPart):
    """[data]: the same for all sites."""

    label: str  # type: ignore[assignment]


class StudyTable(Part):
    """[study]: who, what, how long."""

    sites: Annotated[list[SiteName], Field(min_length=1)]
    algorithm: str
    options: dict[str, Value] = Field(default_factory=dict)
    user: SiteName | None = None
    network: list[list[str | float | int]] = Field(default_factory=list)
    model: Literal["linear", "mlp"] = "linear"
    hidden: list[Count] = Field(default_factory=lambda: [32])
    norm: bool = False  # of the hidden layers, which fedbn keeps at each site
    rounds: Count = 30
    compress: str | None = None  # what sites send, as in "bits=8" or "top_k=0.1"
    seed: int = 0
    test: Annotated[float, Field(ge=0, lt=1)] = 0.25
    double: bool = False


class TermsTable(Part):
    """[terms]: when a round is over, and when it counts."""

    deadline: Annotated[float, Field(gt=0)] = 60.0
    goal: Count | None = None
    minimum: Annotated[float, Field(ge=0, le=1)] = 0.5
    attempts: Count = 20
    measure: bool = True


class StudyFile(Part):
    """The whole file."""

    data: Columns
    study: StudyTable
    terms: TermsTable = TermsTable()
    derive: dict[str, str | dict[str, str]] = Field(default_factory=dict)


class Deployed(NamedTuple):
    """A study and the bytes that say it."""

    said: StudyFile
    content: bytes

    @property
    def hash(self) -> str:
        """The name of the study: one changed byte makes another."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """The sites in the order of their places."""
        return tuple(sorted(self.said.study.sites))

    @property
    def terms(self) -> Terms:
        """When a round is over."""
        table = self.said.terms
        return Terms(table.deadline, table.goal, table.minimum, table.attempts, measure=table.measure)

    def are_enough(self, sites: Collection[str]) -> bool:
        """Whether a round of these sites would count: enough of them, and the site for whom the model is made."""
        user, minimum = self.said.study.user, self.said.terms.minimum
        return len(sites) >= max(1, math.ceil(minimum * len(self.names))) and (user is None or user in sites)

    @property
    def shows_the_working_model(self) -> bool:
        """Whether all sites receive the model that is made for one of them, round by round."""
        return self.said.study.algorithm in FOR_ALL

    def choice(self, path: str) -> Choice:
        """How a site reads its own table."""
        part = self.said.data
        given = {
            "drop": tuple(part.drop), "categorical": tuple(part.categorical), "numeric": tuple(part.numeric),
            "missing": part.missing, "task": part.task, "scale": part.scale, "min_level": part.min_level,
        }  # fmt: skip
        own = {silo: formulas for silo, formulas in self.said.derive.items() if isinstance(formulas, dict)}
        common = {name: formula for name, formula in self.said.derive.items() if isinstance(formula, str)}
        return Choice((path,), part.label, features=tuple(part.features), options=given,
                      derive={**({"": common} if common else {}), **own})  # fmt: skip

    def model(self, classes: bool) -> Model:
        """The model, for a label of classes or of amounts."""
        task = "classification" if classes else "regression"
        if self.said.study.model == "mlp":
            return models.mlp(tuple(self.said.study.hidden), task, self.said.study.norm)
        return models.logistic() if classes else models.linear()

    def recipe(self) -> Recipe:
        """The algorithm with its numbers, its user and prior by their places."""
        part, names = self.said.study, self.names
        maker = maker_of(part.algorithm)
        known = inspect.signature(maker).parameters
        for name in part.options:
            if name not in known or name in ("user", "rounds", "network"):
                others = [n for n in known if n not in ("user", "rounds", "network")]
                raise WrongField(
                    ("study", "options", name), f"{part.algorithm} has no option {name!r}{did_you_mean(name, others)}"
                )
        given: dict[str, Any] = {name: plain(value) for name, value in part.options.items()}
        filled = {"user": self.user_place(known), "rounds": part.rounds, "network": self.network(known)}
        given |= {name: value for name, value in filled.items() if name in known and value is not None}
        try:
            recipe = maker(**given)
        except (TypeError, ValueError) as problem:
            raise WrongField(("study", "options"), f"{part.algorithm}: {problem}") from problem
        if "prior" in recipe.hyper:
            recipe = recipe.with_prior(resolved(recipe.hyper["prior"], names, recipe.hyper.get("user")))
        return recipe if part.compress is None else compressed(recipe, part, self.model(True))

    def user_place(self, known: Mapping[str, Any]) -> int | None:
        """The place of the site for whom the model is made; an algorithm that asks for one must be told."""
        user = self.said.study.user
        if user is None:
            if "user" in known and known["user"].default is inspect.Parameter.empty:
                raise WrongField(("study",), f"{self.said.study.algorithm} makes a model for one site: say user = ...")
            return None
        if "user" not in known:
            said = f"{self.said.study.algorithm} makes a model for every site: leave user out"
            raise WrongField(("study", "user"), said)
        if user not in self.names:
            raise WrongField(("study", "user"), f"there is no site {user!r}{did_you_mean(user, self.names)}")
        return self.names.index(user)

    def network(self, known: Mapping[str, Any]) -> Any:
        """The network, for algorithms on one."""
        edges = self.said.study.network
        if "network" not in known:
            if edges:
                raise WrongField(("study", "network"), f"{self.said.study.algorithm} knows of no network: leave it out")
            return None
        from confrere.networks import Network

        said = "name its edges with their weights, as in [['a', 'b', 1.0]]"
        if not edges or any(len(e) != 3 or isinstance(e[2], str) for e in edges):
            raise WrongField(("study", "network"), said)
        unknown = [name for edge in edges for name in edge[:2] if name not in self.names]
        if unknown:
            raise WrongField(("study", "network"), f"there is no site {unknown[0]!r}")
        places = [[self.names.index(str(name)) for name in edge[:2]] for edge in edges]
        return Network.from_edges(places, n=len(self.names), weights=[float(edge[2]) for edge in edges])

    def agreed(self, features: int, classes: int | None) -> Agreed:
        """What hub and sites agree on, once the features are known; `classes` is None for a label of amounts."""
        recipe, model = self.recipe(), self.model(classes is not None)
        key = jax.random.key(self.said.study.seed)
        params = model.init(jax.random.fold_in(key, 0), features, classes or 1)
        agreed = Agreed.on(recipe, model, self.names, features, params, self.said.study.seed)
        check_prior(recipe, agreed.algorithm.mixer, self.names)
        return agreed


def check_fit(said: StudyFile) -> None:
    """Refuse what would mean nothing beside the rest."""
    goal, sites, part = said.terms.goal, len(said.study.sites), said.study
    if goal is not None and goal > sites:
        raise WrongField(("terms", "goal"), f"{goal} answers cannot come from {plural(sites, 'site')}")
    if part.model == "linear":
        for name in sorted({"hidden", "norm"} & part.model_fields_set):
            raise WrongField(("study", name), 'a linear model has no hidden layers: leave it out, or say model = "mlp"')


def compressed(recipe: Recipe, part: StudyTable, model: Model) -> Recipe:
    """The recipe whose sites send compressed messages; those of some algorithms travel as they are, or not at all."""
    at = ("study", "compress")
    if recipe.bound.on(model, **recipe.hyper).mixer.models:
        raise WrongField(at, f"{part.algorithm} sends models, of which only changes can be compressed: leave it out")
    if part.algorithm in AS_THEY_ARE:
        raise WrongField(at, f"{part.algorithm} sends sums once, or nothing, which are not compressed: leave it out")
    try:
        made = recipe.compressed(compression_named(str(part.compress)))
    except ValueError as problem:
        raise WrongField(at, str(problem)) from problem
    return made


def plain(value: Value) -> Any:
    """A value as recipes want it: lists as tuples."""
    return tuple(value) if isinstance(value, list) else value


def known_algorithms() -> tuple[str, ...]:
    """The fixed list: nothing else can be asked of a site."""
    return ("auto", *algorithms.__all__)


def maker_of(name: str) -> Any:
    """The function that makes an algorithm's recipe."""
    if name not in known_algorithms():
        raise WrongField(("study", "algorithm"), f"there is no {name!r}{did_you_mean(name, known_algorithms())}")
    return algorithms.evidence if name == "auto" else getattr(algorithms, name)


def read_study(file: Path) -> Deployed:
    """The study in a file."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    return study_of(file.read_bytes(), file)


def study_of(content: bytes, file: Path = Path("study.toml")) -> Deployed:
    """The study that some bytes say; every mistake is told with its line and field.

    >>> study = study_of(b'''[data]
    ... label = "ill"
    ... [study]
    ... sites = ["north", "south"]
    ... algorithm = "fedavg"
    ... options = { lr = 0.1 }
    ... ''')
    >>> study.recipe().name, study.names, len(study.hash)
    ('fedavg', ('north', 'south'), 64)
    """
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file} has {len(content):,} bytes: a study has fewer than {MOST_BYTES:,}")
    found, text = parsed(content, file)
    study = Deployed(validated(StudyFile, found, text, file), content)
    with told_with_line(text, file):
        twice = sorted({name for name in study.names if study.names.count(name) > 1})
        if twice:
            raise WrongField(("study", "sites"), f"{twice[0]} is named twice")
        check_fit(study.said)
        study.recipe()
    return study
