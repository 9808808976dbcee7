"""Pages in a browser: both themes, a telephone and a desk, by mouse and by keyboard."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from spacy_treecrf.evaluation.observing import observe
from spacy_treecrf.pages.text_page import in_notebook, text_page
from spacy_treecrf.report.report import Resampling, report_of, rival_of
from spacy_treecrf.report.report_page import report_page
from spacy_treecrf.taggers.column_tagger import ColumnTagger
from tests.columnar.tiny_columns import tiny_file, trained
from tests.docs.browser import browser
from tests.pages.made_up import MARKUP, entities, tags, token

pytestmark = pytest.mark.slow

WIDTHS = (400, 1400)
PAGES = ("entities", "tags", "report", "notebook", "token")
LEGIBLE = 4.5  # the contrast that WCAG 2 asks for at level AA
CONTRAST = """selector => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (colours) => {  // of colours painted one over the other
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
        }
        const linear = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(c => {
            const s = c / 255;
            return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    return Math.min(...[...document.querySelectorAll(selector)].map(element => {
        const below = [];
        for (let e = element; e; e = e.parentElement) {
            below.unshift(getComputedStyle(e).backgroundColor);
        }
        const paper = luminance(below);
        const ink = luminance([...below, getComputedStyle(element).color]);
        return (Math.max(paper, ink) + 0.05) / (Math.min(paper, ink) + 0.05);
    }));
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    rng = Random(0)
    write(folder, "entities", text_page([entities(rng).to_dict() for _ in range(3)], title="Texts"))
    write(folder, "tags", text_page([tags(rng).to_dict()], title="Tags", about="by a model"))
    frame = in_notebook([entities(rng).to_dict()])
    write(folder, "notebook", f"<!doctype html><title>notebook</title>{frame}")
    alone = entities(rng).tokens[0]._repr_html_()
    write(folder, "token", f"<!doctype html><title>notebook</title>{alone}")
    write(folder, "report", a_report(folder))
    return folder


def write(folder: Path, name: str, page: str) -> None:
    (folder / f"{name}.html").write_text(page, encoding="utf8")


def a_report(folder: Path) -> str:
    """A report on a weak model beside a better one; explanations are made up."""
    test = str(tiny_file(folder, "test.conll", n=40, seed=9))
    taggers = [
        ColumnTagger(trained(tiny_file(folder, n=n, seed=3), rounds=rounds), "model", threads=1)
        for n, rounds in ((3, 1), (20, 4))
    ]
    weak, good = (observe(one, one.read(test, gold=True)[1]) for one in taggers)
    few = Resampling(resamples=20)
    rng = Random(0)
    explanation = token(rng, 0, "B-PER").to_dict()
    report = report_of(
        ("weak", "test"), taggers[0].model, weak, explain=lambda e: explanation, resampling=few
    )
    return report_page(report, rival_of("good", weak, good, few))


@contextmanager
def opened(
    chromium: Any, folder: Path, name: str, *, scheme: str = "light", width: int = 1400
) -> Iterator[Any]:
    """The page in a tab; at the end, it has said nothing and asked nobody for anything."""
    said: list[str] = []
    tab = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    asked: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    address = (folder / f"{name}.html").as_uri()
    tab.goto(address)
    yield tab
    tab.close()
    assert not said
    assert [url for url in asked if url not in (address, "about:srcdoc")] == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_screen_and_are_legible(
    chromium: Any, folder: Path, name: str, scheme: str, width: int
) -> None:
    with opened(chromium, folder, name, scheme=scheme, width=width) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        frame = tab.frames[-1]  # of a notebook, the page in its frame
        assert frame.evaluate("document.documentElement.scrollWidth") <= width
        for button in frame.query_selector_all(".type, .token.explained, summary"):
            button.click()
        assert frame.evaluate("document.documentElement.scrollWidth") <= width
        paper = frame.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
        shown = "p, h1, h2, h3, th, td, summary, .token, .type, .lead, .soft, .source, small, .heat"
        assert frame.evaluate(CONTRAST, shown) >= LEGIBLE


def test_a_token_opens_its_panel_by_mouse(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "entities") as tab:
        panel = tab.locator(".panel")
        assert panel.is_hidden()
        tab.locator(".token", has_text="Leeds").first.click()
        text = panel.inner_text()
        assert "“Leeds” U-LOC 93.0 %" in text
        for part in (
            "Labels",
            "For U-LOC",
            "Against it",
            "label before: <start>",
            "label after: <end> (forbidden)",
            "other features",
            "score",
            "What if: P(U-LOC), now 93.0 %",
            "without lower[0]=<b>",
            "lower[0]=<b> → lower[0]=york",
            "How much neighbours decide",
            "this token alone",
            "The best labellings of the whole",
        ):
            assert part in text
        assert "20.0 % ORG “Leeds”, no LOC “Leeds”" in text
        panel.get_by_role("button", name="Close").click()
        assert panel.is_hidden()


def test_contributions_on_the_panel_add_up(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "entities") as tab:
        tab.locator(".token", has_text="Leeds").first.click()
        rows = tab.evaluate(
            """() => ["features for the label", "features against the label",
                      "the rest of the score"].flatMap(name =>
                [...document.querySelectorAll(`.panel table[aria-label="${name}"] tr`)]
                    .map(row => [...row.cells].map(cell => cell.innerText)))"""
        )
        *parts, score = [float(row[-1].replace("−", "-")) for row in rows]
        assert sum(parts) == pytest.approx(score, abs=0.005 * len(rows))


def test_an_entity_offers_its_tokens(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "entities") as tab:
        tab.locator(".type", has_text="ORG 55").first.click()
        panel = tab.locator(".panel")
        assert f"“{MARKUP} of England” ORG 55.0 %" in panel.inner_text()
        first, second, third = panel.locator(".tokens button").all()
        assert first.get_attribute("aria-pressed") == "true"
        third.click()
        assert third.get_attribute("aria-pressed") == "true"
        assert first.get_attribute("aria-pressed") == "false"
        assert "“England” L-ORG" in panel.inner_text()
        assert "I-ORG" in second.inner_text()


def test_the_keyboard_does_all_of_it(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "entities") as tab:
        focused = "document.activeElement.textContent"
        tab.keyboard.press("Tab")
        assert tab.evaluate(focused) == "Mary"
        tab.keyboard.press("ArrowRight")
        assert tab.evaluate(focused) == "Shaw"
        tab.keyboard.press("End")
        assert tab.evaluate(focused) == "LOC 20"
        tab.keyboard.press("Home")
        tab.keyboard.press("ArrowLeft")  # stays
        assert tab.evaluate(focused) == "Mary"
        tab.keyboard.press("Enter")
        panel = tab.locator(".panel")
        assert "“Mary” B-PER" in panel.inner_text()
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press(" ")
        assert "“Shaw” L-PER" in panel.inner_text()
        tab.keyboard.press("Escape")
        assert panel.is_hidden()
        assert tab.evaluate(focused) == "Shaw"
        tab.keyboard.press("Tab")  # to the next text: one stop for each
        assert tab.evaluate(focused) == "Mary"
        assert tab.evaluate("document.activeElement.closest('.sequence').previousSibling !== null")


def test_readers_of_screens_get_names(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "entities") as tab:
        assert tab.get_by_role("button", name="Leeds: U-LOC, 60.0 %").count() == 3
        assert tab.get_by_role("button", name="Mary Shaw: PER, 99.0 %").count() == 3
        assert tab.locator(".panel").get_attribute("aria-live") == "polite"
    with opened(chromium, folder, "report") as tab:
        pictures = tab.get_by_role("img")
        assert pictures.count() >= 6
        names = tab.evaluate("[...document.querySelectorAll('svg[role=img] > title')].length")
        assert names == pictures.count()
        tables = "[...document.querySelectorAll('table')].every(t => t.caption.textContent)"
        assert tab.evaluate(tables)


def test_the_more_probable_an_entity_the_stronger_its_colour(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "entities") as tab:
        alpha = """() => [...document.querySelectorAll(".sequence:first-child .entity")].map(e =>
            Number(/([0-9.]+)\\)$/.exec(getComputedStyle(e).backgroundColor)[1]))"""
        strong, middle, weak = tab.evaluate(alpha)
        assert strong > middle > weak > 0


def test_markup_in_data_is_text(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "tags") as tab:
        tab.locator(".token", has_text=MARKUP).first.click()
        assert tab.locator("img").count() == 0
        assert f"“{MARKUP}”" in tab.locator(".panel").inner_text()
        assert tab.locator(".tagged small").all_inner_texts()[:3] == ["N", "N", "P"]
        assert "“Mary” V" in tab.locator(".panel").inner_text()  # of the second best labelling


def test_a_token_in_a_notebook_opens_by_itself(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "token") as tab:
        assert "“Mary” B-PER 93.0 %" in tab.frames[-1].locator(".panel").inner_text()


def test_errors_of_a_report_are_explained_when_they_are_opened(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "report") as tab:
        first = tab.locator(".error").first
        assert first.locator(".panel").inner_text() == ""
        first.locator("summary").focus()
        tab.keyboard.press("Enter")
        first.locator(".panel h2").wait_for()
        assert "For B-PER" in first.locator(".panel").inner_text()
        assert "What if" in first.locator(".panel").inner_text()


def test_links_of_a_report_lead_to_its_sections(chromium: Any, folder: Path) -> None:
    with opened(chromium, folder, "report") as tab:
        links = tab.evaluate("[...document.querySelectorAll('nav a')].map(a => a.hash.slice(1))")
        assert len(links) >= 7
        assert all(tab.evaluate("id => !!document.getElementById(id)", link) for link in links)


def test_the_policy_stops_what_the_page_does_not_bring(chromium: Any, folder: Path) -> None:
    said: list[str] = []
    tab = chromium.new_page()
    tab.on("console", lambda message: said.append(message.text))
    tab.goto((folder / "entities.html").as_uri())
    tab.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.ran = true";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src='http://127.0.0.1:9/x.png'>");
    }""")
    deadline = time.monotonic() + 60
    while len(stopped := [text for text in said if "Content Security Policy" in text]) < 2:
        assert time.monotonic() < deadline, said
        tab.wait_for_timeout(20)
    assert tab.evaluate("window.ran") is None
    tab.close()
    assert len(stopped) == 2
