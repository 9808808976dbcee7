"""How much the server takes at a time, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes and times of requests.

    max_bytes: Of a body, and of a line of a stream. timeout: Seconds that a body may take to come,
    an answer to be made, and requests in flight to end when the server does. queue: Texts that
    wait or are being annotated. batch: Texts that are annotated together. The last two bound the
    characters of both; a batch ends with the text that goes beyond its bound.
    """

    max_bytes: int = 2**20
    timeout: float = 30.0
    queue: int = 1024
    batch: int = 128
    queue_characters: int = 16_000_000
    batch_characters: int = 1_000_000

    @property
    def most_characters(self) -> int:
        """How many characters may wait: any body that is short enough fits into an empty queue."""
        return max(self.queue_characters, self.max_bytes)

    @property
    def queue_of_streams(self) -> int:
        """How full the queue may be for lines of streams, which wait; other requests do not."""
        return max(1, self.queue // 2)
