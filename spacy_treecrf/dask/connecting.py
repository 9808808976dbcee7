"""Clusters: that of a user, or one of this machine for the time of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

from spacy_treecrf.engine.threads import usable_cores


@contextmanager
def connected(client: Client | str | None, n_workers: int | None = None) -> Iterator[Client]:
    """The cluster that is meant; what is started here is closed.

    n_workers: Those that are started if no cluster is meant; None: one for each core.
    """
    if isinstance(client, Client):
        yield client
    elif client is None:
        with (
            LocalCluster(
                n_workers=n_workers or usable_cores(), threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as own,
        ):
            yield own
    else:
        try:
            own = Client(client, timeout=10)
        except (OSError, TimeoutError, ValueError) as error:
            raise ValueError(
                f"treecrf: no scheduler answers at {client!r}; start one with `dask scheduler`, "
                "and give its address"
            ) from error
        with own:
            yield own
