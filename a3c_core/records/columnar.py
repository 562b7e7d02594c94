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
    columns = [_column(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return from_numbers(np.array(values), kind)  # which refuses scores that are not whole where they should be
    known: dict[str, int] = {}
    numbers = [known.setdefault(word, len(known)) for word in values]
    return from_words(np.array(numbers, np.int32), list(known))


def from_numbers(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Return numbers [n] as a column of a type that holds them.

    `pa.array` would do, but imports pandas to ask whether they are pandas' own: half a second, and 50 MB, for nothing.
    """
    if pa.types.is_boolean(kind):
        data = np.packbits(values, bitorder="little")
    else:
        data = np.array(values, numpy_type(kind))
        if pa.types.is_integer(kind) and not np.array_equal(data, values):
            raise OverflowError(f"numbers that {kind} does not hold")
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(data)])


def numpy_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return NumPy's type for numbers of a column's type; pyarrow's own answer takes pandas."""
    return np.dtype(f"{'f' if pa.types.is_floating(kind) else 'i'}{kind.bit_width // 8}")


def from_words(numbers: NDArray[Any], words: Sequence[str]) -> pa.DictionaryArray:
    """Return a column of words, given by their numbers [n]; its dictionary is in the order of first appearance."""
    present, first, places = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    dictionary = [words[number].encode() for number in present[order].tolist()]
    ends = np.cumsum([0, *map(len, dictionary)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(dictionary))]
    indices = from_numbers(np.argsort(order)[places], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.Array.from_buffers(pa.string(), len(dictionary), buffers))


def numbers_in(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers as an array; pyarrow's own way imports pandas."""
    if column.null_count:
        return column.to_numpy()
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    parts = [_numbers(chunk) for chunk in chunks]
    return np.concatenate(parts) if parts else np.empty(0, numpy_type(column.type))


def joined(parts: Iterable[pa.ChunkedArray], count: int, kind: pa.DataType) -> NDArray[Any]:
    """Return parts of a column of `count` numbers in one array; nothing is held of a part that is done."""
    values, end = np.empty(count, numpy_type(kind)), 0
    for part in parts:
        values[end : end + len(part)] = numbers_in(part)
        end += len(part)
    return values


def _numbers(chunk: pa.Array) -> NDArray[Any]:
    values = np.frombuffer(chunk.buffers()[1], numpy_type(chunk.type))
    return values[chunk.offset : chunk.offset + len(chunk)]


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


def read_column(path: Path, name: str) -> Iterator[pa.ChunkedArray]:
    """Yield one column of a file, a group of rows at a time."""
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            yield file.read_row_group(group, columns=[name])[name]


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
    columns = [_words(column) if pa.types.is_dictionary(column.type) else column for column in group.columns]
    return pa.Table.from_arrays(columns, schema=schema).combine_chunks()


def _words(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return words whose chunks may have dictionaries of their own with one, in the order of first appearance."""
    known: dict[str, int] = {}
    numbers = []
    for chunk in column.chunks:
        places = [known.setdefault(word, len(known)) for word in chunk.dictionary.to_pylist()]
        numbers.append(np.array(places, np.int32)[_numbers(chunk.indices)] if len(chunk) else np.empty(0, np.int32))
    return from_words(np.concatenate(numbers), list(known))
