"""Clusters: that of a user, or one of this machine for the time of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dask
from distributed import Client, LocalCluster

from spacy_treecrf.engine.threads import usable_cores

# Dask watches its processes many times a second, and samples their Python code: an eighth of a core
# for two workers that do nothing. Kernels have no Python code to sample, and memory that is looked
# at every two seconds is watched enough.
RARE_WATCHING = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.tick.interval": "1s",
}


@contextmanager
def connected(client: Client | str | None, n_workers: int | None = None) -> Iterator[Client]:
    """The cluster that is meant; what is started here is closed.

    n_workers: Those that are started if no cluster is meant; None: one for each core.
    """
    if isinstance(client, Client):
        yield client
    elif client is None:
        with (
            dask.config.set(RARE_WATCHING),
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
