"""The live page in a browser: typing, mouse and keyboard, both themes, a telephone and a desk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.docs.browser import browser
from tests.pages.test_browser import CONTRAST, LEGIBLE, WIDTHS
from tests.pipeline.tiny_pipes import trained_nlp
from tests.serve.servers import Server

pytestmark = pytest.mark.slow

TEXT = "Ann Lee saw New York ."
MARKUP = '<img src=x onerror=alert(1)> Bob &amp; "Rome" \'</script>'


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


@contextmanager
def opened(
    chromium: Any, server: Server, width: int = 1400, scheme: str = "light"
) -> Iterator[Any]:
    """The page of a server; it may say nothing in the console and ask no other host."""
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.address}/", wait_until="networkidle")
    yield page
    page.wait_for_load_state("networkidle")
    page.close()
    assert not said
    assert not [url for url in asked if not url.startswith(server.address)]


def type_text(page: Any, text: str) -> None:
    """Type a text in place of the one that is there, and wait for its labels."""
    page.fill("#text", "")
    page.locator("#text").press_sequentially(text)
    wait_for_text(page, text)


def wait_for_text(page: Any, text: str) -> None:
    """Wait until the tokens that are shown are those of the text."""
    shown = "() => [...document.querySelectorAll('.token')].map(t => t.textContent).join('')"
    page.wait_for_function(f"text => ({shown})() === text", arg=text.replace(" ", ""))


def wait_for_panel(page: Any, word: str) -> None:
    """Wait until the panel explains this word."""
    page.locator(".panel h2", has_text=f"“{word}”").wait_for()


def entities(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        ".entity .type", "all => all.map(e => e.getAttribute('aria-label'))"
    )
    return [name.rpartition(",")[0] for name in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_labels_come_while_typing_and_reasons_by_a_click(
    chromium: Any, server: Server, width: int, scheme: str
) -> None:
    with opened(chromium, server, width, scheme) as page:
        type_text(page, TEXT)
        assert entities(page) == ["Ann Lee: PERSON", "New York: PLACE"]
        assert page.inner_text("#status").startswith("6 tokens, 2 spans, ")
        assert page.locator(".changes li").count() == 5  # the best labellings
        page.get_by_role("button", name="York: L-PLACE").click()
        wait_for_panel(page, "York")
        shown = page.inner_text(".panel")
        for part in ("L-PLACE", "Labels", "For L-PLACE", "score", "What if"):
            assert part in shown
        assert page.locator(".token.chosen").inner_text() == "York"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for selector in (".token", ".type", ".panel h2", ".panel td", "#status", "#text"):
            assert page.evaluate(CONTRAST, selector) >= LEGIBLE, selector
        page.get_by_role("button", name="Close").click()
        assert page.locator(".panel").is_hidden()


def test_on_a_wide_screen_reasons_are_there_at_once_and_follow_the_text(
    chromium: Any, server: Server
) -> None:
    with opened(chromium, server) as page:
        type_text(page, "in Rome")
        wait_for_panel(page, "Rome")
        type_text(page, "Bob left")
        wait_for_panel(page, "left")
        page.fill("#text", "")
        page.wait_for_function("() => document.querySelector('.panel').hidden")
        assert page.inner_text("#status") == ""


def test_the_keyboard_is_enough(chromium: Any, server: Server) -> None:
    with opened(chromium, server) as page:
        focused = "document.activeElement.textContent"
        assert page.evaluate("document.activeElement.id") == "text"
        page.keyboard.type(TEXT)
        wait_for_text(page, TEXT)
        page.wait_for_selector(".panel h2")
        page.keyboard.press("Tab")
        assert page.evaluate(focused) == "Ann"
        page.keyboard.press("ArrowRight")
        assert page.evaluate(focused) == "Lee"
        page.keyboard.press("Enter")
        wait_for_panel(page, "Lee")
        page.keyboard.press("End")
        assert page.evaluate(focused) == "."
        page.keyboard.press("Home")
        page.keyboard.press("Escape")
        assert page.locator(".panel").is_hidden()
        assert page.evaluate(focused) == "Lee"


def test_what_is_typed_is_never_markup(chromium: Any, server: Server) -> None:
    with opened(chromium, server) as page:
        type_text(page, MARKUP)
        assert page.locator("img").count() == 0
        assert page.locator("main script").count() == 0
        page.locator(".token").first.click()
        page.wait_for_selector(".panel h2")
        assert page.locator("img").count() == 0


def test_characters_of_two_units_leave_the_text_as_it_is(chromium: Any, server: Server) -> None:
    """Offsets count code points, and the strings of browsers count units of UTF-16."""
    text = "😀 Ann 🏳️‍🌈  saw New York😀 ."
    shown = """() => {
        const copy = document.querySelector(".sequence").cloneNode(true);
        for (const type of copy.querySelectorAll(".type")) type.remove();
        return copy.textContent;
    }"""
    with opened(chromium, server) as page:
        page.locator("#text").press_sequentially(text)
        page.wait_for_function(f"text => ({shown})() === text", arg=text)
        page.locator(".token", has_text="saw").click()
        wait_for_panel(page, "saw")


def test_reasons_are_those_of_the_text_that_is_shown(chromium: Any, server: Server) -> None:
    with opened(chromium, server) as page:
        type_text(page, TEXT)
        wait_for_panel(page, "Ann")
        # As it is between a key and the labels: no event, no labels.
        page.evaluate("document.getElementById('text').value = 'Bob'")
        with page.expect_request("**/explain") as asked:
            page.locator(".token", has_text="saw").click()
        assert asked.value.post_data_json["text"] == TEXT
        wait_for_panel(page, "saw")


def test_closing_ends_the_request_for_reasons(chromium: Any, server: Server) -> None:
    with opened(chromium, server) as page:
        type_text(page, TEXT)
        wait_for_panel(page, "Ann")
        page.route("**/explain", lambda route: None)  # never answered
        with page.expect_request("**/explain"):
            page.locator(".token", has_text="saw").click()
        with page.expect_event("requestfailed") as failed:
            page.get_by_role("button", name="Close").click()
        assert failed.value.url.endswith("/explain")
        assert page.locator(".panel").is_hidden()
        assert page.locator(".chosen").count() == 0


def test_labels_of_tokens_are_shown_below_them(chromium: Any, tmp_path: Path) -> None:
    trained_nlp("tag").to_disk(tmp_path / "tagger")
    with Server(tmp_path / "tagger") as own, opened(chromium, own, 400) as page:
        type_text(page, "Ann saw Rome")
        assert page.locator(".tagged small").all_inner_texts() == ["N", "V", "N"]
        assert page.inner_text("#status").startswith("3 tokens, ")
        page.locator(".token").nth(1).click()
        wait_for_panel(page, "saw")


def test_the_page_tells_why_a_text_is_refused(chromium: Any, strict_server: Server) -> None:
    page = chromium.new_page()
    page.goto(f"{strict_server.address}/")
    page.fill("#text", "Ann " * 500)
    page.wait_for_selector("#status.wrong")
    assert "1000 bytes" in page.inner_text("#status")
    page.fill("#text", "Ann")
    page.wait_for_selector(".entity")
    assert page.locator("#status.wrong").count() == 0
    page.close()


def test_the_policy_forbids_all_but_the_page_itself(server: Server) -> None:
    answer = server.client.get("/")
    policy = answer.headers["content-security-policy"]
    for rule in ("default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert "http://" not in answer.text.replace("http://www.w3.org", "")
    assert "https://" not in answer.text
