"""Batches as Arrow IPC streams: columns are features, and optionally ids, targets and weights."""

import io
import struct
from typing import Any

import numpy as np

from sapwood.serve.rows import (
    Batch,
    BodyError,
    Limits,
    RowError,
    TooLargeError,
    check_targets,
    check_weights,
    ids_of,
)

__all__ = ["ARROW", "read_arrow", "write_arrow"]

ARROW = "application/vnd.apache.arrow.stream"
RECORD_BATCH, DICTIONARY_BATCH = 3, 2
EXPANSION = 8
"""How many times as large as its bytes a body may be in memory."""


def read_arrow(
    body: bytes, params: dict[str, str], wanted: str, limits: Limits, task: str = "numbers"
) -> Batch:
    """Return the rows of an Arrow IPC stream.

    - `body`: the stream. It may not be compressed: a small body could take any amount of memory.
    - `params`: the columns that are not features: "id", "target" and "weight".
    - `wanted`: whether targets are required.
    - `limits`: the sizes that it may have.
    """
    table = _table(body, limits)
    try:
        return _batch(table, params, wanted, task)
    except UnicodeDecodeError:
        raise BodyError("a name or a text is not UTF-8; send text in UTF-8") from None


def _batch(table: Any, params: dict[str, str], wanted: str, task: str) -> Batch:
    """Return the columns of a table as a batch."""
    special = {name: params[name] for name in ("id", "target", "weight") if params.get(name)}
    for option, column in special.items():
        if table.column_names.count(column) != 1:
            raise RowError(
                f"{option}={column}: there is no such column, or more than one; the columns are "
                f"{', '.join(table.column_names[:20])}"
            )
    if len(set(table.column_names)) < table.num_columns:
        raise RowError("two columns have the same name; rename one of them")
    y = weights = None
    if wanted == "xy":
        if "target" not in special:
            raise RowError("name the column of the target, as by /learn?target=y")
        y = _values(table, special["target"])
        check_targets(y, task)
    if "weight" in special:
        weights = _values(table, special["weight"])
        check_weights(weights)
    ids = ids_of(table.column(special["id"]).to_pylist(), "rows") if "id" in special else None
    features = [name for name in table.column_names if name not in special.values()]
    if not features:
        raise RowError("the stream has no feature; send at least one")
    rows = {name: _values(table, name) for name in features}
    return Batch(rows, table.num_rows, ids, y, weights)


def _table(body: bytes, limits: Limits) -> Any:
    """Return all record batches, checked."""
    import pyarrow as pa

    batches, rows, size = [], 0, 0
    try:
        _check_plain(body)
        with pa.ipc.open_stream(body) as reader:
            schema = reader.schema
            for batch in reader:
                batch.validate(full=True)
                rows += batch.num_rows
                size += batch.nbytes
                if rows > limits.rows or size > EXPANSION * limits.bytes:
                    raise TooLargeError(
                        f"more than {limits.rows:,} rows or {EXPANSION * limits.bytes:,} bytes; "
                        "send fewer at once"
                    )
                batches.append(batch)
    except TooLargeError:
        raise
    except (pa.ArrowException, OSError, struct.error, ValueError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise BodyError(f"the body is no Arrow IPC stream: {reason}") from None
    if not rows:
        raise RowError("the stream has no rows; send at least one")
    return pa.Table.from_batches(batches, schema)


def _values(table: Any, name: str) -> list[Any]:
    """Return a column as plain values, None where one is missing."""
    import pyarrow as pa

    column = table.column(name)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    good = (
        *(pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_null),
    )
    if not any(check(kind) for check in good):
        raise RowError(f"column {name!r} is of type {kind}; send numbers, texts or booleans")
    if pa.types.is_floating(kind):
        values = column.combine_chunks().to_numpy(zero_copy_only=False)
        floats: list[Any] = values.astype(np.float64).tolist()
        return floats
    plain: list[Any] = column.to_pylist()
    return plain


def write_arrow(columns: dict[str, Any]) -> bytes:
    """Return columns as an Arrow IPC stream."""
    import pyarrow as pa

    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


# -- compression -----------------------------------------------------------------------------------


def _check_plain(body: bytes) -> None:
    """Raise BodyError if a message is compressed, before anything is decompressed."""
    import pyarrow as pa

    reader = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if _is_compressed(message.metadata.to_pybytes()):
            raise BodyError("it is compressed; send it without compression")


def _is_compressed(metadata: bytes) -> bool:
    """Whether the flatbuffer of a message has a field for the compression of its body."""
    message = struct.unpack_from("<I", metadata)[0]
    kind_at = _field(metadata, message, 1)
    header_at = _field(metadata, message, 2)
    if kind_at is None or header_at is None:
        return False
    header = header_at + struct.unpack_from("<I", metadata, header_at)[0]
    if metadata[kind_at] == DICTIONARY_BATCH:
        data_at = _field(metadata, header, 1)
        if data_at is None:
            return False
        header = data_at + struct.unpack_from("<I", metadata, data_at)[0]
    elif metadata[kind_at] != RECORD_BATCH:
        return False
    return _field(metadata, header, 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return the place of a field of a table of a flatbuffer, None if it is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    entry = 4 + 2 * number
    if entry + 2 > size:
        return None
    offset = struct.unpack_from("<H", data, vtable + entry)[0]
    return table + offset if offset else None
