"""Addresses of topics: ``kafka://HOST:PORT/TOPIC``."""

import re
from dataclasses import dataclass, field

from sapwood import validation
from sapwood.streams.kafka_config import Config
from sapwood.streams.stream import StreamError

__all__ = ["SCHEME", "Address", "address_of", "is_kafka"]

SCHEME = "kafka://"
BROKER = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})", re.ASCII)
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""What Kafka allows as the name of a topic."""
EXPECTED = "kafka://HOST:PORT/TOPIC is expected, with further HOST:PORT behind commas"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a topic is.

    - `url`: as it was given; what messages and reports call the topic.
    - `servers`: one broker or several of a cluster, as librdkafka takes them.
    - `config`: further settings of the client, which no message or report shows.
    """

    url: str
    servers: str
    topic: str
    config: Config = field(default_factory=Config, repr=False, compare=False)

    def __str__(self) -> str:
        return self.url


def is_kafka(name: object) -> bool:
    """Whether a name is the address of a topic, and not that of a file."""
    return isinstance(name, str) and name.startswith(SCHEME)


def address_of(url: str, config: Config | None = None) -> Address:
    """Parse an address.

    - Raises StreamError if it is none.

    Examples
    --------
    >>> address_of("kafka://one:9092,two:9092/demand").servers
    'one:9092,two:9092'
    >>> address_of("kafka://localhost/demand")
    Traceback (most recent call last):
    sapwood.streams.stream.StreamError: kafka://localhost/demand: 'localhost' is no broker; ...
    """
    servers, _, topic = url.removeprefix(SCHEME).partition("/")
    for server in servers.split(","):
        found = BROKER.fullmatch(server)
        if found is None or not 0 < int(found[1]) < 1 << 16:
            raise StreamError(f"{url}: {validation.shown(server)} is no broker; {EXPECTED}")
    if TOPIC.fullmatch(topic) is None or topic in (".", ".."):
        raise StreamError(f"{url}: {validation.shown(topic)} is no topic; {EXPECTED}")
    return Address(url, servers, topic, config or Config())
