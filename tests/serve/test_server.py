"""Names that a server may be asked for, by the address that it is bound to, and its start."""

from __future__ import annotations

import contextlib
import gc
import socket

import pytest
from starlette.types import Receive, Scope, Send

from spacy_treecrf.serve.limits import Limits
from spacy_treecrf.serve.server import LOOPBACK, bind, hosts_for, run


def bound_hosts(host: str, *allowed: str) -> set[str] | None:
    with bind(host, 0) as bound:
        return hosts_for(host, bound, allowed)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "127.0.0.2", "127.1"])
def test_on_any_loopback_address_only_its_own_names_are_known(host: str) -> None:
    found = bound_hosts(host)
    assert found is not None
    assert {*LOOPBACK, host} <= found
    assert "example.org" not in found
    assert "example.org" in (bound_hosts(host, "example.org") or ())


@pytest.mark.skipif(not socket.has_ipv6, reason="needs IPv6")
@pytest.mark.parametrize("host", ["::1", "::ffff:127.0.0.1"])
def test_loopback_addresses_of_ipv6_count_as_such(host: str) -> None:
    try:
        found = bound_hosts(host)
    except ValueError:
        pytest.skip("the machine has no such address")
    assert found is not None
    assert set(LOOPBACK) <= found


def test_on_every_address_any_name_is_known_unless_some_are_given() -> None:
    assert bound_hosts("0.0.0.0") is None
    assert bound_hosts("0.0.0.0", "ner.example.org") == {"0.0.0.0", "ner.example.org", *LOOPBACK}


def test_a_server_that_could_not_start_does_not_say_that_it_serves() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    said: list[str] = []
    with bind("127.0.0.1", 0) as bound, contextlib.suppress(SystemExit):
        run(app, bound, Limits(), lambda: said.append("serving"), lambda: None)
    gc.unfreeze()
    assert not said


def test_an_empty_host_is_refused() -> None:
    with pytest.raises(ValueError, match="--host is empty"):
        bind("", 0)
