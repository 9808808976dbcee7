"""Pages are one file with a policy that allows their own style and scripts and nothing else."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib import resources

import pytest

from spacy_treecrf.pages.document import DATA_ID, asset, data_block, document, in_frame
from spacy_treecrf.pages.markup import tag
from tests.pages.test_markup import Reader

ASSETS = sorted(path.name for path in (resources.files("spacy_treecrf.pages") / "assets").iterdir())


def test_the_policy_names_the_style_and_scripts_by_their_hashes() -> None:
    page = document("t", tag("main", "x"), data={}, scripts=("packing.js", "panel.js"))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    policy = policy.replace("&#x27;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy

    def hashed(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert rules["style-src"] == hashed(style)
    assert rules["script-src"].split() == [hashed(script) for script in scripts]
    assert len(scripts) == 2


def test_a_page_names_no_other_place() -> None:
    page = document("t", tag("main"), data={}, scripts=tuple(n for n in ASSETS if n[-3:] == ".js"))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bsrc=|<link", page.replace("// ", ""))


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "a&amp;b", "\u2028", "]]>"]
)
def test_data_cannot_end_their_element(text: str) -> None:
    block = data_block({"text": text})
    assert not set("<>&\u2028") & set(block)
    assert json.loads(block) == {"text": text}
    found = Reader(document("t", tag("main"), data={"text": text}))
    assert [name for name, _ in found.elements].count("script") == 1
    assert dict(found.elements)["script"] == {"type": "application/json", "id": DATA_ID}


def test_titles_are_escaped() -> None:
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in document("</title><script>", tag("p"))


def test_a_frame_holds_the_whole_page() -> None:
    page = document('"<&', tag("main", "x"))
    (element,) = Reader(in_frame(page, 'a "title"')).elements
    assert element[0] == "iframe"
    assert element[1]["srcdoc"] == page
    assert element[1]["title"] == 'a "title"'
    assert element[1]["sandbox"] == "allow-scripts"


@pytest.mark.parametrize("name", ASSETS)
def test_assets_make_no_markup_of_data(name: str) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(", asset(name))
    assert not re.search(r"import\(|</script|</style", asset(name))


@pytest.mark.parametrize("name", [name for name in ASSETS if name != "live.js"])
def test_assets_but_that_of_the_live_page_ask_for_nothing(name: str) -> None:
    assert not re.search(r"fetch\(|XMLHttp|WebSocket|EventSource|sendBeacon", asset(name))
