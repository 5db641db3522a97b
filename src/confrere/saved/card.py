"""The model card: what a model is for, what it rests on and what it may not be trusted with, in Markdown."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from confrere.plural import plural

PERCENT = "{:.0%}"


def model_card(manifest: Mapping[str, Any]) -> str:
    """A page about a saved model, from its manifest alone."""
    manifest = escaped(manifest)
    paragraphs = [
        f"# A model for {manifest['user']}",
        f"Predicts {told(manifest)} from {plural(len(manifest['features']), 'feature')}, for patients like those of "
        f"{manifest['user']}. It was not made for anybody else's.",
        "## How it came about",
        f"{manifest['algorithm']}. {manifest['reason']}",
        shares(manifest),
        overridden(manifest["config"]),
        "## How good it is",
        quality(manifest),
        *(f"- {note}" for note in manifest["notes"]),
        *([f"Beside each prediction: {spread['words']}"] if (spread := manifest.get("uncertainty")) else []),
        "## Data",
        data(manifest["data"]),
        "## What left each silo",
        shared(manifest["shared"]),
        "## Limits",
        "It knows nothing of patients that differ from those it was trained on: `confrere monitor` tells whether new "
        "rows look like them. It is no medical device, and nobody has checked it for use in care.",
        f"confrere {manifest['confrere']}; SHA-256 of the data {manifest['data']['sha256']}.",
    ]  # fmt: skip
    return "\n\n".join(text for text in paragraphs if text) + "\n"


def escaped(value: Any) -> Any:
    """Texts (names of silos, columns and labels above all) so that they are text in Markdown and HTML, in tables too.

    >>> escaped({"a|b": ["<i>", "R&D", 3]})
    {'a\\\\|b': ['&lt;i>', 'R&amp;D', 3]}
    """
    if isinstance(value, str):
        plain = " ".join(value.splitlines()).replace("&", "&amp;").replace("<", "&lt;")
        return plain.replace("|", "\\|").replace("[", "\\[")
    if isinstance(value, Mapping):
        return {escaped(name): escaped(inner) for name, inner in value.items()}
    return [escaped(inner) for inner in value] if isinstance(value, Sequence) else value


def told(manifest: Mapping[str, Any]) -> str:
    """What is predicted."""
    label = (manifest["encoding"] or {}).get("label")
    named = f"`{label}`" if label and re.fullmatch(r"[\w .-]+", label) else label or "the label"
    if manifest["labels"] is None:
        return named
    return f"{named} ({', '.join(manifest['labels'])})"


def shares(manifest: Mapping[str, Any]) -> str:
    """Whose information it rests on, as a table."""
    lines = ["| silo | share of the information | relevance |", "| --- | --- | --- |"]
    for name, share in manifest["weights"].items():
        relevance = manifest["relevance"].get(name)
        own = " (itself)" if name == manifest["user"] else ""
        lines.append(f"| {name}{own} | {PERCENT.format(share)} | {'' if relevance is None else f'{relevance:.2f}'} |")
    return "\n".join(lines)


def overridden(config: Mapping[str, Any]) -> str:
    """What the user decided instead of the program."""
    chosen = config.get("overridden") or {}
    if not chosen:
        return ""
    return "Chosen by hand: " + "; ".join(f"{name} {value}" for name, value in chosen.items()) + "."


def quality(manifest: Mapping[str, Any]) -> str:
    """What it reached on rows that took no part, or that there are none."""
    test = manifest["test"]
    if test is None:
        return f"No rows of {manifest['user']} were kept for testing: how good it is there is not known."
    rows = plural(test["rows"], "row")
    if "rmse" in test:
        return f"On {rows} of {manifest['user']} that took no part in training: RMSE {test['rmse']:.4g}."
    return (
        f"On {rows} of {manifest['user']} that took no part in training: accuracy {test['accuracy']:.3f}, "
        f"log-loss {test['log_loss']:.3f}."
    )


def data(found: Mapping[str, Any]) -> str:
    """Whose rows, and what was noticed about them."""
    kind = {"real": "", "artificial": " Real rows, in silos that never were.", "synthetic": " INVENTED rows."}
    rows = ", ".join(f"{name} {count}" for name, count in zip(found["silos"], found["train_rows"], strict=True))
    notes = "".join(f"\n- {note}" for note in found["notes"])
    return f"From {found['origin']}.{kind[found['kind']]} Training rows: {rows}.{notes}"


def shared(entries: list[Mapping[str, Any]]) -> str:
    """The record, added up: what for, and how many numbers or words from each silo."""
    if not entries:
        return "Nothing."
    silos = list(dict.fromkeys(entry["silo"] for entry in entries))
    lines = [f"| what for | {' | '.join(silos)} |", "| --- |" + " --- |" * len(silos)]
    for why in dict.fromkeys(entry["why"] for entry in entries):
        counts = [sum(e["count"] for e in entries if (e["silo"], e["why"]) == (silo, why)) for silo in silos]
        lines.append(f"| {why} | {' | '.join(map(str, counts))} |")
    return "Numbers and words, in all (the manifest lists each):\n\n" + "\n".join(lines)
