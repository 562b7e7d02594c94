"""A block of records on its way from compiled code to the columnar file, and to whoever wants them one by one."""

from collections.abc import Iterator
from itertools import repeat

import numpy as np
import pyarrow as pa

from a3c_core.results.records import SCHEMA, EpisodeRecord
from a3c_core.virtual.compiled.state import STATUSES, Records


class RecordBlock:
    """Records of a run, RECORD [n]."""

    def __init__(self, run: str, rows: Records):
        self._run, self._rows = run, rows

    def table(self) -> pa.Table:
        """Return them as columns."""
        statuses = pa.array(STATUSES).take(pa.array(self._rows["status"])).dictionary_encode()  # by first appearance
        runs = pa.DictionaryArray.from_arrays(np.zeros(len(self._rows), np.int32), [self._run])
        columns = {"run": runs, "status": statuses}
        for name, field in zip(EpisodeRecord._fields, SCHEMA, strict=True):
            if name not in columns:
                columns[name] = pa.array(np.ascontiguousarray(self._rows[name]), field.type)
        return pa.Table.from_arrays([columns[name] for name in EpisodeRecord._fields], schema=SCHEMA)

    def records(self) -> Iterator[EpisodeRecord]:
        """Yield them one by one."""
        columns = [self._rows[name].tolist() for name in EpisodeRecord._fields[1:-1]]
        statuses = [STATUSES[number] for number in self._rows["status"].tolist()]
        return map(EpisodeRecord._make, zip(repeat(self._run), *columns, statuses))
