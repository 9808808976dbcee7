"""What the process does that annotates: it answers the server over its standard streams.

A process of its own has an interpreter of its own: the server reads requests and writes answers
while this one annotates.
"""

from __future__ import annotations

import gc
import os
import queue
import signal
import sys
import threading
from dataclasses import asdict
from typing import BinaryIO

from pydantic_core import to_json

from spacy_treecrf.serve.annotating import PipelineAnnotator
from spacy_treecrf.serve.frames import (
    decode_asked,
    encode_replies,
    read_frame,
    write_frame,
)


def run(model: str, pipe: str | None, threads: int) -> None:
    """Load the pipeline, tell what it is, and answer batches until the server closes the pipe."""
    # The server ends this process by closing its pipe, after what is in flight.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    asked, answered = _own_streams()
    annotator = PipelineAnnotator.load(model, pipe, threads)
    annotator.warm_up()
    # What is loaded by now stays: Python need not look through it for garbage again and again.
    gc.collect()
    gc.freeze()
    write_frame(answered, to_json(asdict(annotator.served)))
    frames = _frames_until_the_end(asked)
    while True:
        replies = annotator.answers(decode_asked(frames.get()))
        write_frame(answered, *encode_replies(replies))


def _frames_until_the_end(asked: BinaryIO) -> queue.SimpleQueue[bytes]:
    """What the server asks. When it closes its pipe, or dies, this process ends at once.

    It closes it when it has all answers, or wants no more of them.
    """
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                frames.put(read_frame(asked))
        finally:
            os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return frames


def _own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for the server alone: what else prints does so on stderr."""
    asked = os.fdopen(os.dup(0), "rb")
    answered = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return asked, answered
