"""Messages between two processes over pipes: the length of each comes before it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import BinaryIO

from pydantic_core import from_json, to_json

from spacy_treecrf.serve.asking import Asked, Reply

_LENGTH = struct.Struct("<Q")


def write_frame(stream: BinaryIO, *parts: bytes) -> None:
    """Write the parts as one message."""
    stream.write(_LENGTH.pack(sum(map(len, parts))))
    for part in parts:
        stream.write(part)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes:
    """The next message; EOFError at the end, also in the midst of a message."""
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: BinaryIO, length: int) -> bytes:
    found = stream.read(length)
    if len(found) < length:
        raise EOFError
    return found


def encode_asked(asked: Sequence[Asked]) -> bytes:
    return to_json(asked)


def decode_asked(frame: bytes) -> list[Asked]:
    return [Asked(*one) for one in from_json(frame)]


def encode_replies(replies: Sequence[Reply]) -> list[bytes]:
    """Parts of a frame: a list of sizes, and the bodies as they are behind it."""
    sizes = to_json([(reply.status, len(reply.body), reply.n_tokens) for reply in replies])
    return [_LENGTH.pack(len(sizes)), sizes, *(reply.body for reply in replies)]


def decode_replies(frame: bytes) -> list[Reply]:
    (length,) = _LENGTH.unpack_from(frame)
    at = _LENGTH.size + length
    replies = []
    for status, n_bytes, n_tokens in from_json(frame[_LENGTH.size : at]):
        replies.append(Reply(status, frame[at : at + n_bytes], n_tokens))
        at += n_bytes
    return replies
