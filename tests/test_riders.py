"""What free riders earn on the Titanic, over seeds: the numbers of docs/rewards.md."""

import re
from pathlib import Path

import pytest

import confrere as cf
from confrere.insight.credit.riders import RIDES, earnings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "rewards.md"
USER, SEEDS = "0-35 a", range(12)
RECIPES = {
    "fedsgd": lambda: cf.fedsgd(lr=1.0),
    "weight_erosion": lambda: cf.weight_erosion(user=USER, lr=1.0, p_d=0.02),
}
SHOWN = ("equal", "rows", "weight", "ndoye", "influence", "shapley", "sure")


def printed(recipe: str, riding: str) -> list[float]:
    """The line of one rider in the table of one recipe: mean shares in per cent."""
    line = re.search(rf"^\| {recipe} \| {riding} \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert line, (recipe, riding)
    return [float(cell.split("±")[0]) for cell in line[1].split("|")]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_riders_earn_what_the_page_says(recipe):
    found = earnings(lambda seed: cf.data.titanic("age-some", seed=seed), USER, RECIPES[recipe], SEEDS)
    for riding in RIDES:
        shares = [100 * found[riding][scheme] for scheme in SHOWN]
        cells = " | ".join(f"{v.mean():.0f} ± {v.std(ddof=1):.0f}" for v in shares)
        print(f"| {recipe} | {riding} | {cells} |")
        for v, said in zip(shares, printed(recipe, riding), strict=True):
            assert v.mean() == pytest.approx(said, abs=2)


@pytest.mark.slow
@pytest.mark.parametrize(("lr", "fooled"), [(1.0, True), (0.1, False)])
def test_silence_is_paid_where_a_recipe_trains_too_long_and_not_where_its_rate_suits_the_rows(lr, fooled):
    draw = lambda seed: cf.data.heart_disease().split(test=0.5, seed=seed)  # noqa: E731
    found = earnings(draw, "cleveland", lambda: cf.fedsgd(lr=lr), SEEDS, ["noise", "echo"])
    said = {"noise": (12, 9, 17), "echo": (9, 21, 44)}
    for riding, percent in said.items():
        shares = [100 * found[riding][scheme].mean() for scheme in ("influence", "shapley", "sure")]
        assert shares == pytest.approx(percent if fooled else (0, 0, 0), abs=2 if fooled else 0.5), riding
