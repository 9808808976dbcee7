"""The command `serve`: a pipeline behind HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from spacy_treecrf.cli.shared.common import FAILED, reports_errors, say
from spacy_treecrf.cli.shared.interrupts import noted_interrupts
from spacy_treecrf.cli.shared.options import Threads
from spacy_treecrf.cli.shared.serving_process import command

EXAMPLES = """\b
Examples:
  spacy-treecrf serve training/ner/model-best
  spacy-treecrf serve en_pipeline --port 0 --max-bytes 100000
  spacy-treecrf serve en_pipeline --host 0.0.0.0 --allow-host ner.example.org
"""


# Many parameters: typer makes an option of each.
@reports_errors
def serve(
    model: Annotated[str, typer.Argument(help="spaCy pipeline: a folder or a package.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 is reached from other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Name by which the server may be asked for; may be repeated."),
    ] = None,
    max_bytes: Annotated[
        int, typer.Option(min=1, help="Longest body, and longest line of a stream.")
    ] = 2**20,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds that a body, an answer or ending may take."),
    ] = 30.0,
    queue: Annotated[
        int, typer.Option(min=1, help="Texts that may wait; beyond them requests get a 503.")
    ] = 1024,
    batch: Annotated[int, typer.Option(min=1, help="Texts that are annotated together.")] = 128,
    pipe: Annotated[
        str | None, typer.Option(help="Name of the treecrf pipe, if the pipeline has several.")
    ] = None,
    threads: Threads = 0,
) -> None:
    """Serve a pipeline over HTTP: a page to try it, JSON for programs.

    GET / is the page, /openapi.json describes the rest. Ctrl-C or SIGTERM ends it: requests in
    flight are answered. Needs the extra "serve": pip install "spacy-treecrf[serve]".
    """
    from spacy_treecrf.serve.extra import require_serve

    with noted_interrupts() as interrupts:
        require_serve()
        from spacy_treecrf.serve import server
        from spacy_treecrf.serve.app import make_app
        from spacy_treecrf.serve.limits import Limits
        from spacy_treecrf.serve.process import NotReady, ProcessAnnotator

        limits = Limits(max_bytes, timeout, queue, batch)
        with server.bind(host, port) as bound:
            try:
                annotator = ProcessAnnotator(command(model, pipe, threads), timeout)
            except NotReady as failure:
                if failure.code < 0:
                    say(f"treecrf: {failure}")
                raise typer.Exit(FAILED) from None
            app = make_app(annotator, limits, server.hosts_for(host, bound, allow_host or []))
            serving = f"serving {model} at {server.address_of(bound)}"
            server.run(app, bound, limits, lambda: typer.echo(serving), interrupts.check)
