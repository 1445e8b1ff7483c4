"""Settings of the Kafka client that depend on the user: encryption and authentication.

They are read from a file of lines ``name=value``, as `kcat -F` and Kafka's own tools do, so that no
password is on a command line. They are passed to librdkafka unchanged. No message, report or
checkpoint contains a value.
"""

import os
from collections.abc import Mapping

from sapwood import validation
from sapwood.storage.atomic import StrPath
from sapwood.streams.stream import StreamError

__all__ = ["Config", "config_of"]

OWN = (
    "auto.offset.reset",
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "isolation.level",
    "log_level",
    "debug",
    "message.timeout.ms",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "plugin.library.paths",
    "transactional.id",
)
"""Settings that exactly-once processing and the log of this client depend on; users cannot set them."""
SHORTEST = 3
"""Values of fewer characters, such as "0", are no secrets, and would be found everywhere."""
WORDS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl", "plain", "true", "false", "none")
"""Values that are no secrets either, and are parts of the names of settings."""


class Config(dict[str, str]):
    """Settings for librdkafka, which are not shown.

    Examples
    --------
    >>> config = Config({"sasl.username": "anna", "sasl.password": "correct horse"})
    >>> config
    Config(sasl.username, sasl.password)
    >>> config.without_values("anna and correct horse were rejected")
    '*** and *** were rejected'
    """

    def __repr__(self) -> str:
        return f"Config({', '.join(self)})"

    __str__ = __repr__

    def without_values(self, text: str) -> str:
        """Return a text in which no value of a setting is."""
        for value in sorted(self.values(), key=len, reverse=True):
            if len(value) >= SHORTEST and value.lower() not in WORDS:
                text = text.replace(value, "***")
        return text


def config_of(source: StrPath | Mapping[str, str] | None) -> Config:
    """Return the settings of a file, or of a mapping.

    - `source`: lines ``name=value``; blank ones, and those that begin with "#", are passed over.
    - Raises StreamError if a line is no setting, a name comes twice, or is not to be changed.
    - Raises OSError if the file cannot be read.
    """
    if source is None:
        return Config()
    if isinstance(source, Mapping):
        found, place = Config(source), "kafka_config"
        for name, value in found.items():
            if not (isinstance(name, str) and isinstance(value, str)):
                raise StreamError(f"{place}: {validation.shown(name)} is to be a text with a text")
    else:
        place = os.fspath(source)
        found = _read(place)
    for name in found:
        if name in OWN or name.endswith("_cb"):
            raise StreamError(
                f"{place}: {name} is decided by sapwood, so that every message is learned once: "
                "leave it out"
            )
    return found


def _read(path: str) -> Config:
    found = Config()
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            name, sign, value = text.partition("=")
            name = name.strip()
            if not sign or not name or any(map(str.isspace, name)):
                # The line itself may be a secret.
                raise StreamError(f"{path}, line {number}: name=value is expected")
            if name in found:
                raise StreamError(f"{path}, line {number}: {name} was set before; leave one out")
            found[name] = value.strip()
    return found
