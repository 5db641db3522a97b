"""The report in a real browser: Debian's chromium, offline, in light and dark, on a phone, a desk and paper."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from confrere.report import write_report
from tests.report_helpers import hospital_contents, with_rounds

PHONE, DESK = {"width": 400, "height": 800}, {"width": 1200, "height": 900}
LOOKS = [(scheme, size) for scheme in ("light", "dark") for size in (PHONE, DESK)]
NAMES = [f"{scheme}, {size['width']} wide" for scheme, size in LOOKS]


def chromium() -> str:
    """Where the browser is; its absence is a reason to skip, but a failure in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    if os.environ.get("CI") == "true":
        pytest.fail("chromium must be installed in CI (apt-get install chromium)")
    pytest.skip("chromium is not installed (apt-get install chromium): the report is not opened in a browser")


class Opened(NamedTuple):
    """A page as it was opened, with everything that it said and asked for."""

    page: object
    said: list[str]
    asked: list[str]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    return write_report(with_rounds(hospital_contents()), tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=LOOKS, ids=NAMES)
def opened(request, browser, report) -> Iterator[Opened]:
    scheme, size = request.param
    context = browser.new_context(color_scheme=scheme, viewport=size)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda problem: said.append(str(problem)))

    def guard(route):
        asked.append(route.request.url)
        _ = route.continue_() if route.request.url.startswith(("file:", "data:")) else route.abort()

    context.route("**/*", guard)
    page.goto(report.as_uri())
    yield Opened(page, said, asked)
    context.close()


def open_everything(page) -> None:
    page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")


def test_nothing_is_asked_for_but_the_page_and_nothing_complains(opened, report):
    open_everything(opened.page)
    opened.page.wait_for_load_state("networkidle")
    assert [url for url in opened.asked if not url.startswith("data:")] == [report.as_uri()]
    assert opened.said == []


def test_the_plots_are_there_and_their_marks_lie_inside(opened):
    open_everything(opened.page)
    sizes = opened.page.evaluate(
        """[...document.querySelectorAll('svg')].map(svg => {
            const box = svg.getBoundingClientRect();
            const marks = svg.querySelectorAll('.mark, .bar, .dot, .curve');
            const inside = e => { const b = e.getBoundingClientRect();
                return b.left >= box.left - 1 && b.right <= box.right + 1 &&
                       b.top >= box.top - 1 && b.bottom <= box.bottom + 1; };
            return [box.width, box.height, marks.length,
                    [...svg.querySelectorAll('.mark, .bar, .dot, .curve, text')].filter(e => !inside(e))
                        .map(e => e.outerHTML)]; })"""
    )
    contents = hospital_contents()
    assert len(sizes) > 8 * len(contents.hospitals)
    for width, height, marks, outside in sizes:
        assert min(width, height) > 60
        assert marks > 0
        assert outside == []


def test_text_in_plots_is_large_enough_to_read(opened):
    smallest = opened.page.evaluate(
        """Math.min(...[...document.querySelectorAll('details[open] svg, #overview ~ * svg')].flatMap(svg => {
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            return [...svg.querySelectorAll('text')].map(t => scale * parseFloat(getComputedStyle(t).fontSize)); }))"""
    )
    assert smallest >= 10


def test_the_page_is_not_wider_than_the_screen(opened):
    open_everything(opened.page)
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_axe_finds_nothing_serious(opened):
    from axe_playwright_python.sync_playwright import Axe

    open_everything(opened.page)
    found = Axe().run(opened.page).response
    serious = [
        (v["id"], [node["html"][:200] for node in v["nodes"]][:3])
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert len(found["passes"]) > 10


def test_dark_is_dark_and_light_is_light(opened, request):
    red = opened.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (red < 80) == ("dark" in request.node.callspec.id)


def test_a_link_to_a_closed_hospital_opens_it(opened):
    last = opened.page.locator("details.hospital").last
    assert last.get_attribute("open") is None
    opened.page.locator("nav a").nth(2).click()
    assert last.get_attribute("open") is not None


def test_on_paper_everything_is_shown_in_dark_ink(browser, report):
    page = browser.new_page(color_scheme="dark")
    page.goto(report.as_uri())
    page.emulate_media(media="print")
    hidden = page.evaluate(
        """[...document.querySelectorAll('details h3, details table, details pre, details svg')]
            .filter(e => !e.checkVisibility({contentVisibilityAuto: true}) || e.getBoundingClientRect().height === 0)
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert hidden == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()
