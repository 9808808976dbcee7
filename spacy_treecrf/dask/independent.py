"""Independent trainings as tasks on a cluster: each runs as a whole on some worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from spacy_treecrf.dask.connecting import connected
from spacy_treecrf.dask.crew import TIMED_OUT, WAIT_SECONDS, Crew
from spacy_treecrf.estimators import BoostedCRF
from spacy_treecrf.estimators.checking import FeatureSequences, LabelSequences, checked

Calls = Sequence[tuple[Any, ...]]  # a function that travels, and its arguments


@contextmanager
def independent_calls(
    client: Client | str | None,
) -> Iterator[Callable[[Calls], Iterable[Any]]]:
    """A function that runs calls on a cluster, and yields what they return, as it comes.

    A function that several calls have is sent once to each worker. What is still running when the
    caller leaves is cancelled.
    """
    with connected(client) as cluster:
        _check_workers(cluster)
        yield lambda calls: (result for _, result in _results(cluster, calls))


def _check_workers(client: Client) -> None:
    """Wait for a worker; refuse those that do not have this version of the package."""
    try:
        client.wait_for_workers(1, timeout=WAIT_SECONDS)
    except TIMED_OUT as error:
        raise ValueError(
            f"treecrf: the cluster has had no worker for {WAIT_SECONDS:.0f} seconds; start some "
            "with `dask worker`"
        ) from error
    crew = Crew(client)
    crew.check_versions(crew.present())


def _results(client: Client, calls: Calls) -> Iterator[tuple[int, Any]]:
    """The number of each call and what it returned, as it comes."""
    if not calls:
        return
    functions = {id(call[0]): call[0] for call in calls}
    sent = dict(
        zip(functions, client.scatter(list(functions.values()), broadcast=True), strict=True)
    )
    numbers: dict[Future, int] = {}
    try:
        for number, (function, *args) in enumerate(calls):
            numbers[client.submit(_call, sent[id(function)], *args, pure=False)] = number
        for future in as_completed(list(numbers)):
            yield numbers[future], future.result()
    except (KilledWorker, CancelledError) as error:
        raise ValueError(
            "treecrf: workers died, and with them what their trainings need; look into their logs, "
            "or give them more memory"
        ) from error
    finally:
        client.cancel(list(numbers))


def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


def average(
    X: FeatureSequences,
    y: LabelSequences,
    X_dev: FeatureSequences | None = None,
    y_dev: LabelSequences | None = None,
    *,
    seeds: Iterable[int],
    client: Client | str | None = None,
    **settings: Any,
) -> BoostedCRF:
    """The `BoostedCRF.average` of models that differ by their seeds, each trained on some worker.

    X, y, X_dev, y_dev: As `BoostedCRF.fit` takes them.
    seeds: Of the models, in the order of the average.
    client: The cluster, or the address of its scheduler. None starts a `LocalCluster` of this
    machine's cores, and closes it afterwards.
    settings: Those of `BoostedCRF`; `threads` is 1 unless given.
    """
    chosen = list(seeds)
    if not chosen:
        raise ValueError("treecrf: seeds is empty; name a seed for each model of the average")
    X, y = checked(X, y, "X", "y", soft=True)
    if X_dev is not None and y_dev is not None:
        X_dev, y_dev = checked(X_dev, y_dev, "X_dev", "y_dev")
    fitting = _Fitting((X, y, X_dev, y_dev), {"threads": 1, **settings})
    for seed in chosen:
        BoostedCRF(**{**fitting.settings, "seed": seed})._recipe()  # refuses wrong settings
    models: dict[int, BoostedCRF] = {}
    with connected(client) as cluster:
        _check_workers(cluster)
        for number, model in _results(cluster, [(fitting, seed) for seed in chosen]):
            models[number] = model
    return BoostedCRF.average(models[number] for number in range(len(chosen)))


class _Fitting:
    """A training on given data, but for its seed."""

    def __init__(self, data: tuple[Any, ...], settings: dict[str, Any]) -> None:
        self.data = data
        self.settings = settings

    def __call__(self, seed: int) -> BoostedCRF:
        return BoostedCRF(**{**self.settings, "seed": seed}).fit(*self.data)
