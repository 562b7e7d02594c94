"""Columnar files of records: rows into columns, and these into files whose bytes do not tell how they came together."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_GROUP_ROWS = 65_536


def from_rows(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return rows, at least one, as columns."""
    columns = [_column(values, field) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(values: tuple[Any, ...], field: pa.Field) -> pa.Array:
    if field.name == "score":
        return pa.array(values).cast(field.type)  # refuses scores that are not whole where the game says they are
    return pa.array(values, field.type)


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
