"""Columnar files of records: rows into columns, and these into files whose bytes do not tell how they came together."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

_GROUP_ROWS = 65_536


def from_rows(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return rows, at least one, as columns."""
    columns = [_column(values, field) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: tuple[Any, ...], field: pa.Field) -> pa.Array:
    if field.name == "score":
        return pa.array(values).cast(field.type)  # refuses scores that are not whole where the game says they are
    return pa.array(values, field.type)


def from_numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return numbers [n] as a column of a type that holds them.

    `pa.array` would do, but imports pandas to ask whether they are pandas' own: half a second, and 50 MB, for nothing.
    """
    if pa.types.is_boolean(kind):
        data = np.packbits(values, bitorder="little")
    else:
        data = np.array(values, kind.to_pandas_dtype())
        if pa.types.is_integer(kind) and not np.array_equal(data, values):
            raise OverflowError(f"numbers that {kind} does not hold")
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def from_words(numbers: NDArray[Any], words: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of words, given by their numbers [n]; its dictionary is in the order of first appearance."""
    present, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    dictionary = [words[number].encode() for number in present[order].tolist()]
    ends = np.cumsum([0, *map(len, dictionary)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(dictionary))]
    indices = from_numbers(np.argsort(order)[places], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.Array.from_buffers(pa.string(), len(dictionary), buffers))


def concatenate(parts: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Return one table of all parts; without any, an empty one."""
    table = pa.concat_tables(parts) if parts else schema.empty_table()
    return table.unify_dictionaries().combine_chunks()


def write_part(table: pa.Table, path: Path) -> None:
    """Write a table that will be read just once more, at a third of the cost: the master has other things to do."""
    encoded = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    pq.write_table(table, path, compression="none", use_dictionary=encoded)


def write_stream(parts: Iterable[pa.Table], schema: pa.Schema, path: Path) -> int:
    """Write parts of any length, one after the other; return how many rows they had."""
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as file:
        for group in _groups(parts, schema):
            file.write_table(group)
            rows += len(group)
    return rows


def _groups(parts: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the same rows in groups of the same length, but for the last, wherever the parts were cut."""
    waiting: list[pa.Table] = []
    for part in parts:
        waiting.append(part)
        while sum(map(len, waiting)) >= _GROUP_ROWS:
            table = pa.concat_tables(waiting)
            yield _encoded(table.slice(0, _GROUP_ROWS), schema)
            waiting = [table.slice(_GROUP_ROWS)]
    if rest := [part for part in waiting if len(part)]:
        yield _encoded(pa.concat_tables(rest), schema)


def _encoded(group: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a group whose dictionaries are in the order of their values' first appearance in it."""
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    return group.cast(pa.schema(plain)).combine_chunks().cast(schema)
