"""`sapwood serve`: a model as an HTTP service."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sapwood.cli.failure import Terminal, UsageError, failing_in_one_line
from sapwood.cli.values import amount, byte_count

__all__ = ["serve"]

learning = partial(typer.Option, rich_help_panel="Learning")
limit = partial(typer.Option, rich_help_panel="Limits")
security = partial(typer.Option, rich_help_panel="Security")
a_file = {"metavar": "FILE"}

FSYNC = """When the log is flushed to the disk: before each acknowledgement, every second, or when the
system decides."""
NEW_FEATURES = "Accept rows with features that the model does not know yet."
TARGET = "The target in messages of the topic; repeat it for several. Default: the model's own."
NEW_CLASSES = "Accept labels of classes that a classifier does not know yet."
TOKEN = "Bearer token for all requests; or the variable SAPWOOD_TOKEN."
LEARN_TOKEN = "Bearer token for /learn and /labels; or the variable SAPWOOD_LEARN_TOKEN."
ANONYMOUS = "Listen on other addresses than localhost without a token."


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")],
    *,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 is any free one.")
    ] = 8080,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="Only predict, and reload the model when it changes."),
    ] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="What is logged.")
    ] = "info",
    fsync: Annotated[Literal["always", "interval", "never"], learning(help=FSYNC)] = "always",
    checkpoint_every: Annotated[
        str, learning(metavar="TIME", help="Time between checkpoints.")
    ] = "60s",
    monitor: Annotated[bool, learning(help="Detect concept drift.")] = True,
    new_features: Annotated[bool, learning("--new-features", help=NEW_FEATURES)] = False,
    new_classes: Annotated[bool, learning("--new-classes", help=NEW_CLASSES)] = False,
    follow: Annotated[
        str | None,
        learning(metavar="URL", help="Also learn from a Kafka topic, kafka://HOST:PORT/TOPIC."),
    ] = None,
    target: Annotated[list[str] | None, learning(help=TARGET)] = None,
    kafka_config: Annotated[
        Path | None, learning(help="Settings of the Kafka client.", **a_file)
    ] = None,
    max_body: Annotated[str, limit(help="Largest request body.")] = "16MB",
    max_rows: Annotated[int, limit(min=1, help="Most rows of a request.")] = 10_000,
    max_pending: Annotated[
        int, limit(min=1, help="Largest number of pending predictions.")
    ] = 100_000,
    max_rate: Annotated[float, limit(min=0, help="Requests per second; 0: any.")] = 0.0,
    max_learn_rate: Annotated[float, limit(min=0, help="Learned rows per second; 0: any.")] = 0.0,
    max_requests: Annotated[int, limit(min=1, help="Most concurrent requests.")] = 256,
    max_streams: Annotated[int, limit(min=0, help="Most open live pages.")] = 32,
    learn: Annotated[bool, security(help="Accept /learn and /labels.")] = True,
    token_file: Annotated[Path | None, security(help=TOKEN, **a_file)] = None,
    learn_token_file: Annotated[Path | None, security(help=LEARN_TOKEN, **a_file)] = None,
    allow_host: Annotated[
        list[str] | None, security(metavar="NAME", help="Accept this name in the Host header too.")
    ] = None,
    allow_anonymous: Annotated[bool, security("--allow-anonymous", help=ANONYMOUS)] = False,
) -> None:
    """Serve a model over HTTP: predictions, learning, metrics and a live page.

    Rows that are learned survive the end of the process: they are logged before they are
    acknowledged. The model file is replaced at every checkpoint.
    """
    with failing_in_one_line(Terminal(stderr=True), extra="cli,serve"):
        from sapwood.serve import logs, server
        from sapwood.serve.rows import Limits
        from sapwood.serve.settings import Settings, is_loopback
        from sapwood.serve.store import StoreError
        from sapwood.serve.wal import LogError
        from sapwood.serve.writer import WriterLimits

        token = _token(token_file, "SAPWOOD_TOKEN", "--token-file")
        learn_token = _token(learn_token_file, "SAPWOOD_LEARN_TOKEN", "--learn-token-file")
        if not (is_loopback(host) or token or allow_anonymous):
            raise UsageError(
                f"--host {host} can be reached from other machines: give a token by --token-file, "
                "or pass --allow-anonymous if a proxy authenticates clients"
            )
        if follow is not None and read_only:
            raise UsageError("--follow learns and --read-only does not: leave one of them out")
        seconds, by_time = amount(checkpoint_every, "--checkpoint-every")
        if not by_time:
            raise UsageError(f"--checkpoint-every {checkpoint_every}: a time is expected, as 60s")
        settings = Settings(
            path=model,
            host=host,
            port=port,
            read_only=read_only,
            learn=learn,
            token=token,
            learn_token=learn_token,
            hosts=tuple(name.lower() for name in allow_host or ()),
            fsync=fsync,
            limits=Limits(_bytes(max_body), max_rows),
            writer=WriterLimits(checkpoint_seconds=seconds),
            max_pending=max_pending,
            max_rate=max_rate,
            max_learn_rate=max_learn_rate,
            max_requests=max_requests,
            max_streams=max_streams,
            new_features=new_features,
            new_classes=new_classes,
            monitor=monitor,
        )
        logs.set_up(log_level)
        try:
            server.run(settings, _follower(follow, target or [], kafka_config))
        except (StoreError, LogError, TypeError) as error:
            raise UsageError(str(error)) from error


def _bytes(text: str) -> int:
    try:
        return byte_count(text)
    except ValueError as error:
        raise UsageError(f"--max-body {error}") from None


def _token(path: Path | None, variable: str, option: str) -> str | None:
    """Return the token of a file, or of a variable; None if there is none."""
    text = os.environ.get(variable) if path is None else path.read_text(encoding="utf-8")
    if text is None:
        return None
    token = text.strip()
    if not (token.isascii() and token.isprintable() and len(token) >= 16 and " " not in token):
        raise UsageError(
            f"{option if path else variable}: a token of at least 16 letters and digits is "
            "expected, as `openssl rand -hex 32` prints it"
        )
    return token


def _follower(url: str | None, target: list[str], config: Path | None) -> Any:
    """Return what makes the follower of a topic, None if none is to be followed."""
    if url is None:
        return None
    from sapwood.cli.reading import ClassReading, Reading, is_topic

    if not is_topic([url]):
        raise UsageError(f"--follow {url}: kafka://HOST:PORT/TOPIC is expected")

    def make(service: Any) -> Any:
        from sapwood.serve.follow import TopicFollower

        host, model = service.replica.host, "the served model"
        typed = Reading(target=target, kafka_config=config).for_model(host.model, model)
        if host.task == "classes":
            typed.check_one_target("the classes are those of one target")
        elif host.targets and len(typed.target) != len(host.targets):
            raise UsageError(f"--target: name all targets of the model, {', '.join(host.targets)}")
        if not typed.target:
            raise UsageError("--follow: name the target in the messages by --target")

        def open_stream(model: Any, sample: bytes | None) -> Any:
            if host.task != "classes":
                return replace(typed, model=model, sample=sample).open(url)
            own = {"target": [], "label": typed.target[0], "model": model, "sample": sample}
            return ClassReading(kafka_config=config, **own).open(url)

        return TopicFollower(
            service, open_stream, typed.target[0] if host.task == "classes" else None
        )

    return make
