"""A run's episodes as curves for TensorBoard, by TensorFlow's own writer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from a3c_core.records.tables import EpisodeRecord


@contextmanager
def writer(directory: Path) -> Iterator[Callable[[EpisodeRecord], None]]:
    """Give what writes down a record, a step being an episode; everything is on disk when the block ends."""
    import tensorflow as tf  # seconds, which only those who asked for it wait

    files = tf.summary.create_file_writer(str(directory))
    kind = tf.compat.v1.SummaryMetadata(data_class=1)  # scalars: tf.summary.scalar would need TensorBoard itself
    kind.plugin_data.plugin_name = "scalars"

    def write(record: EpisodeRecord) -> None:
        for name, value in curves(record).items():
            tf.summary.write(name, tf.constant(value, tf.float32), step=record.episode, metadata=kind)

    with files.as_default():
        yield write
    files.close()


def curves(record: EpisodeRecord) -> dict[str, float]:
    """Return an episode's points by their curves."""
    return {
        "episode/score": record.score,
        "episode/clock_s": record.applied_s,
        "episode/staleness": record.staleness,
        "episode/entropy": record.entropy,
        "workers/alive": record.workers_alive,
    }
