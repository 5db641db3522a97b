"""Saving and loading: `model.safetensors`, `manifest.json` and a model card in one folder; nothing is pickled.

The folder appears whole or not at all: it is written under another name, and renamed when it is on the disk.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from confrere import models
from confrere._version import __version__
from confrere.answers import Answer
from confrere.answers.answer import NoHistory
from confrere.answers.predictor import Predictor
from confrere.core import Tree
from confrere.data.intake import Encoding
from confrere.data.silos import Silos
from confrere.disk import write_through
from confrere.models import Model
from confrere.saved.card import model_card
from confrere.saved.reference import reference_of
from confrere.saved.spread import is_spread, loaded_spread, spread_manifest, spread_tensors
from confrere.study.cases import digest_of
from confrere.study.study import versions
from confrere.study.units import Units

FORMAT = 2  # since 2 the manifest has a SHA-256 of its own
MODEL, MANIFEST, CARD = "model.safetensors", "manifest.json", "CARD.md"


@dataclass(frozen=True, eq=False)
class Saved:
    """A model that was loaded, and its manifest."""

    folder: Path
    model: Predictor
    manifest: Mapping[str, Any]


def save_model(
    answer: Answer,
    silos: Silos,
    folder: str | os.PathLike[str],
    config: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> Path:
    """Write an answer's model to a folder, with all that is needed to use, judge and reproduce it.

    `silos` are those that `personalise` was given; `config` is what else to remember about how it was made. A folder
    that exists is left alone unless `replace` says otherwise, and then only if it holds a model.

    >>> import tempfile, confrere as cf
    >>> from confrere.saved import load_model, save_model
    >>> silos = cf.data.titanic("age-strict", seed=0)
    >>> answer = cf.personalise(silos, user="36+")
    >>> folder = save_model(answer, silos, tempfile.mkdtemp() + "/model")
    >>> loaded = load_model(folder)
    >>> bool((loaded.model.predict(silos["36+"].X) == answer.model.predict(silos["36+"].X)).all())
    True
    """
    from safetensors.numpy import save

    target = Path(folder)
    check_target(target, replace)
    tensors = save(flattened(answer.model) | spread_tensors(answer.model))
    manifest = manifest_of(answer, silos, config or {}, hashlib.sha256(tensors).hexdigest())
    target.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        write_through(making / MODEL, tensors)
        write_through(making / MANIFEST, json.dumps(signed(manifest), indent=1, allow_nan=False).encode())
        write_through(making / CARD, model_card(manifest).encode())
        making.chmod(0o755)
        put_in_place(making, target)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise
    return target


def check_target(target: Path, replace: bool) -> None:
    """Refuse to write over anything but an older model, and that only if asked."""
    if not target.exists():
        return
    if target.is_dir() and not any(target.iterdir()):
        return
    if not (target / MANIFEST).is_file():
        raise ValueError(f"{target} is there already, and is no saved model: choose another folder")
    if not replace:
        raise ValueError(
            f"{target} holds a model already: choose another folder, or replace it (--force; in Python replace=True)"
        )


def put_in_place(made: Path, target: Path) -> None:
    """Rename the folder to its name; what was there before goes only when the new one is complete."""
    older = None
    if target.exists():
        older = Path(tempfile.mkdtemp(prefix=f".{target.name}-old-", dir=target.parent))
        target.rename(older / "model")
    made.rename(target)
    if older is not None:
        shutil.rmtree(older)


def flattened(predictor: Predictor) -> dict[str, np.ndarray]:
    """The parameters of all members by name: 0/w, 0/b, ..."""
    found = {}
    for k, (_, params) in enumerate(predictor.members):
        for path, leaf in jax.tree.leaves_with_path(params):
            found["/".join([str(k), *(str(step.key) for step in path)])] = np.ascontiguousarray(leaf)
    return found


def unflattened(tensors: Mapping[str, np.ndarray]) -> list[Tree]:
    """The parameters of every member, in order."""
    members: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        first, *path, last = name.split("/")
        place = members.setdefault(int(first), {})
        for step in path:
            place = place.setdefault(step, {})
        place[last] = jnp.asarray(value)
    return [members[k] for k in sorted(members)]


def manifest_of(answer: Answer, silos: Silos, config: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Everything but the parameters."""
    predictor = answer.model
    own = silos[answer.user]
    X, y = own.rows("train")
    encoding = None if predictor.encoding is None else predictor.encoding.for_silo(answer.user).to_dict()
    classes = silos.classes() if predictor.model.task == "classification" else None
    return {
        "format": FORMAT, "key": answer.key if isinstance(answer.key, int) else list(answer.key),
        "confrere": __version__, "versions": versions(),
        "user": answer.user, "algorithm": answer.algorithm, "reason": answer.reason, "notes": list(answer.notes),
        "weights": dict(answer.weights), "prior": answer.prior, "relevance": dict(answer.relevance),
        "scores": finite(answer.scores), "rows": answer.rows,
        "model": {"name": predictor.model.name, "task": predictor.model.task, "hidden": hidden_of(predictor),
                  "norm": normalises(predictor), "units": list(predictor.units)},
        "members": [float(weight) for weight, _ in predictor.members],
        "features": list(predictor.feature_names),
        "labels": None if predictor.label_names is None else list(predictor.label_names),
        "encoding": encoding,
        "data": {
            "origin": silos.origin, "kind": silos.kind, "sha256": digest_of(silos), "silos": list(silos.names),
            "train_rows": list(silos.sizes("train")), "notes": list(silos.notes),
        },
        "shared": [entry._asdict() for entry in answer.shared],
        "reference": reference_of(predictor.feature_names, X, y, classes),
        "test": reached_on_test_rows(predictor, *own.rows("test")),
        "uncertainty": spread_manifest(predictor),
        "why": reasons_of(answer),
        "config": dict(config),
        "sha256": {MODEL: digest},
    }  # fmt: skip


def reasons_of(answer: Answer) -> dict[str, Any]:
    """Why every silo counted as it did, for who asks later, when the run is gone."""
    from confrere.insight.explanations.why import why

    try:
        _ = answer.history
    except NoHistory:
        return {}
    return {silo: why(answer, silo).to_dict() for silo in answer.weights}


def signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with a SHA-256 of its own content beside that of the model: what is edited later is noticed."""
    return {**manifest, "sha256": {**manifest["sha256"], MANIFEST: own_digest(manifest)}}


def own_digest(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of a manifest without itself, whatever the order of its fields and its blanks.

    >>> own_digest({"a": 1, "sha256": {"manifest.json": "x"}}) == own_digest({"sha256": {}, "a": 1})
    True
    """
    others = {name: digest for name, digest in manifest["sha256"].items() if name != MANIFEST}
    content = json.loads(json.dumps({**manifest, "sha256": others}))  # as it will be read
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def finite(scores: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers that JSON can hold."""
    return {name: float(value) if np.isfinite(value) else None for name, value in scores.items()}


def hidden_of(predictor: Predictor) -> list[int]:
    """The widths of a network's hidden layers; none for a linear model."""
    if predictor.model.name != "mlp":
        return []
    params = predictor.members[0][1]
    return [int(params[f"layer{k}"]["b"].shape[0]) for k in range(len(params) - 1)]


def normalises(predictor: Predictor) -> bool:
    """Whether the hidden layers of a network are normalised."""
    return predictor.model.name == "mlp" and "norm" in predictor.members[0][1]["layer0"]


def reached_on_test_rows(predictor: Predictor, X: np.ndarray, y: np.ndarray) -> dict[str, Any] | None:
    """What the model reached on the user's test rows, if there are any."""
    if len(y) == 0:
        return None
    if predictor.model.task == "regression":
        return {"rows": len(y), "rmse": float(np.sqrt(np.mean(np.square(predictor.predict(X) - y))))}
    chance = predictor.predict_proba(X)
    told = np.clip(chance[np.arange(len(y)), y.astype(int)], 1e-12, 1)
    return {
        "rows": len(y), "log_loss": float(-np.log(told).mean()),
        "accuracy": float((chance.argmax(axis=1) == y).mean()),
    }  # fmt: skip


def load_model(folder: str | os.PathLike[str]) -> Saved:
    """A model that `save_model` wrote; what was changed since then is refused."""
    from safetensors.numpy import load

    place = Path(folder)
    manifest = read_manifest(place)
    try:
        content = (place / MODEL).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{place} has no {MODEL}: save the model anew") from None
    if hashlib.sha256(content).hexdigest() != manifest["sha256"][MODEL]:
        raise ValueError(f"{place / MODEL} is not the file that was saved: its SHA-256 differs from {MANIFEST}")
    tensors = load(content)
    own = {name: value for name, value in tensors.items() if not is_spread(name)}
    members = list(zip(manifest["members"], unflattened(own), strict=True))
    encoding = None if manifest["encoding"] is None else Encoding.from_dict(manifest["encoding"])
    labels = None if manifest["labels"] is None else tuple(manifest["labels"])
    predictor = Predictor(
        model_named(manifest["model"]), tuple(members), manifest["user"], tuple(manifest["features"]), labels, encoding,
        Units(*manifest["model"].get("units", ())), loaded_spread(manifest, tensors, unflattened),
    )  # fmt: skip
    return Saved(place, predictor, manifest)


def read_manifest(place: Path) -> dict[str, Any]:
    """The manifest of a saved model, or what is wrong with it."""
    path = place / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{place} is no saved model: there is no {MANIFEST} in it")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise ValueError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise ValueError(f"{path} has the format {found!r}; this version of confrere reads {FORMAT}")
    digests = manifest.get("sha256")
    if not isinstance(digests, dict) or digests.get(MANIFEST) != own_digest(manifest):
        raise ValueError(f"{path} was changed since it was saved (its SHA-256 differs): save the model anew")
    return manifest


def model_named(plain: Mapping[str, Any]) -> Model:
    """The functions of a model by its name."""
    if plain["name"] == "mlp":
        return models.mlp(plain["hidden"], plain["task"], plain.get("norm", False))
    makers = {"logistic": models.logistic, "linear": models.linear}
    if plain["name"] not in makers:
        raise ValueError(f"there is no model {plain['name']!r}; there are {', '.join((*makers, 'mlp'))}")
    return makers[plain["name"]]()
