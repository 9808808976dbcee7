"""Pages of the site that are made from elsewhere, and pictures that follow the colours of the site.

The reference of the command line is what typer says of the commands, and the pages of the project's
root (CONTRIBUTING.md, CHANGELOG.md) appear in the site as they are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
# In the root of the project, and in the site.
ROOT_PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
DOCUMENT = ("utils", "docs", "--name", "spacy-treecrf")  # of typer
COMMANDS = "<!-- commands -->"
PICTURE = re.compile(r"^!\[(.*)\]\((\S+\.svg)\)$", re.M)


def on_files(files: Any, config: Any) -> Any:
    for source, target in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf8")
        files.append(File.generated(config, target, content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    for source, target in ROOT_PAGES.items():
        markdown = re.sub(rf"(?<=\]\()((?:\.\./)*)\.\./{source}", rf"\g<1>{target}", markdown)
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    folder = Path(config["docs_dir"], page.file.src_uri).parent
    return PICTURE.sub(lambda found: inlined(folder / found[2], found[1]), markdown)


def commands() -> str:
    """What the commands say of themselves, as Markdown."""
    done = subprocess.run(
        [sys.executable, "-m", "typer", "spacy_treecrf.cli.app", *DOCUMENT],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    _title, _, text = done.stdout.replace("\b", "").partition("\n")
    # Examples come as indented lines of a paragraph.
    return re.sub(r"(?:^  spacy-treecrf .*\n)+", _as_block, text, flags=re.M)


def _as_block(lines: re.Match[str]) -> str:
    examples = "\n".join(line.strip() for line in lines[0].splitlines())
    return f"\n```shell\n{examples}\n```\n"


def inlined(path: Path, alternative: str) -> str:
    """The picture as part of the page, where the page's colours reach it."""
    picture = path.read_text(encoding="utf8").replace("<svg ", f'<svg aria-label="{alternative}" ')
    # Markdown would end a block of HTML at a blank line.
    picture = "\n".join(line for line in picture.splitlines() if line.strip())
    return f'<div class="diagram" data-search-exclude>\n{picture}\n</div>'
