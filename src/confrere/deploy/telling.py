"""What a study would do at a site, in words: what its operator reads before approving it."""

from confrere.deploy.study import Deployed


def told(study: Deployed, site: str) -> list[str]:
    """The page of a study."""
    part, data = study.said.study, study.said.data
    options = ", ".join(f"{name} = {value}" for name, value in part.options.items())
    lines = [
        f"Study {study.hash[:12]}: {part.algorithm}{f' ({options})' if options else ''}, {part.rounds} rounds, "
        f"a {part.model} model that predicts {data.label!r}.",
        f"Sites: {', '.join(study.names)}.",
        f"For whom: {part.user or 'every site, each its own model'}.",
        "What leaves this site before round 1: names and kinds of columns, names of classes, which levels occur in at "
        f"least {data.min_level} rows, whether values are missing, the number of rows"
        + (
            ", and counts, sums and sums of squares of numeric columns in training rows."
            if data.scale == "shared"
            else "."
        ),
        f"Set aside for test: {part.test:.3g} of this site's rows, drawn by the site itself.",
        "What leaves it in every round: its message (a model or a gradient, never a row), and the metrics that "
        "site.toml names.",
    ]
    if part.algorithm in ("local", "ridge_local"):
        lines[-1] = "What leaves it in every round: that it trained, and the metrics that site.toml names."
    if made := study.choice("").formulas(site):
        lines.append(f"Columns made from others: {'; '.join(f'{name} = {formula}' for name, formula in made.items())}.")
    if study.shows_the_working_model:
        lines.append(f"Every site, this one too, receives the model that is being made for {part.user} in each round.")
    if part.user not in (None, site):
        lines.append(f"The finished model stays at {part.user}; this site does not receive it.")
    return lines
