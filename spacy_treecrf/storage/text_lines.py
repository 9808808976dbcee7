"""The lines of a text file, whatever ends them."""

from __future__ import annotations


def split_lines(text: str) -> list[str]:
    """The lines of a text that end with LF or CRLF; with CR, if the text has no LF.

    A CR that is left in a line stands where lines end in different ways: the caller judges it.
    """
    # Not str.splitlines, which would also cut at characters that may stand in a token.
    if "\n" not in text:
        return text.split("\r")
    return [line.removesuffix("\r") for line in text.split("\n")]
