"""Blocks of records on their way from compiled code to the columnar files, and to whoever wants them one by one."""

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from a3c_core.records.columnar import from_numbers, from_words
from a3c_core.records.tables import SCHEMA, UPDATE_TABLE, EpisodeRecord, UpdateRecord

Records = NDArray[np.void]  # of a structured type

# NumPy's integers, since Numba compiles a function again for every one of Python's that it is called with
APPLIED, DROPPED, REJECTED = np.arange(3)
STATUSES = ("applied", "dropped", "rejected")
BLOCK_RECORDS = 4096

KINDS = {int: "i8", float: "f8", bool: "?"}
RECORD = np.dtype([(name, KINDS.get(kind, "u1")) for name, kind in EpisodeRecord.__annotations__.items()][1:])
UPDATE = np.dtype([(name, KINDS.get(kind, "u1")) for name, kind in UpdateRecord.__annotations__.items()])


def one_record(*parts: Mapping[str, Any]) -> Records:
    """Return a record [1] with all the parts' numbers, which compiled code reads by their names."""
    values = {name: value for part in parts for name, value in part.items() if type(value) in KINDS}
    return np.array([tuple(values.values())], [(name, KINDS[type(value)]) for name, value in values.items()])


class RecordBlock:
    """Records of a run, RECORD [n]."""

    def __init__(self, run: str, rows: Records):
        self._run, self._rows = run, rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def env_steps(self) -> int:
        """Of all their episodes."""
        return int(self._rows["steps"].sum())

    def table(self, schema: pa.Schema = SCHEMA) -> pa.Table:
        """Return them as columns."""
        runs = from_words(np.zeros(len(self._rows), np.int32), [self._run])
        fields = zip(EpisodeRecord._fields[1:], list(schema)[1:], strict=True)
        columns = [_column(self._rows[name], field.type) for name, field in fields]
        return pa.Table.from_arrays([runs, *columns], schema=schema)

    def records(self, most: int = BLOCK_RECORDS) -> Iterator[EpisodeRecord]:
        """Yield them one by one; the last ones, if there are more than `most`."""
        rows = self._rows[-most:]
        columns = [rows[name].tolist() for name in EpisodeRecord._fields[1:-1]]
        statuses = [STATUSES[number] for number in rows["status"].tolist()]
        return map(EpisodeRecord._make, zip(repeat(self._run), *columns, statuses))


def update_table(rows: Records, schema: pa.Schema = UPDATE_TABLE.schema) -> pa.Table:
    """Return UPDATE [n], perhaps with statistics, as the columns of a schema."""
    return pa.Table.from_arrays([_column(rows[field.name], field.type) for field in schema], schema=schema)


def _column(values: NDArray, kind: pa.DataType) -> pa.Array:
    return from_words(values, STATUSES) if pa.types.is_dictionary(kind) else from_numbers(values, kind)
