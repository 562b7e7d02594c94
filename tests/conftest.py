"""The longest files first, so that all workers (`make test`) are done at about the same time; sweeps without pages."""

import gc
import io
import signal
from pathlib import Path

import pytest

LONGEST_FIRST = (
    "test_storm",
    "test_tracking",
    "test_extending",
    "test_processes",
    "test_documents",
    "test_gorila",
    "test_lstm",
    "test_frames",
    "test_notebooks",
    "test_sweep_page",
    "test_losses",
    "test_bad_state",
    "test_ga3c_processes",
    "test_dppo",
    "test_sweep",
    "test_runtime_benchmark",
    "test_tracking_end",
    "test_report",
    "test_games",
    "test_validate",
    "test_results",
    "test_paced",
    "test_mlflow_ui",
    "test_train",
    "test_setup",
    "test_lost_records",
)


def pytest_configure():
    """Hear Ctrl-C, also where a script that is deaf to it started the tests: what they start would be deaf, too."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(200_000, 20, 50)  # or a fifth of the time goes to looking for cycles among a million objects


def pytest_sessionfinish():
    """Leave what is there as it is: pytest would look for cycles among all of it, five times."""
    gc.freeze()


def pytest_collection_modifyitems(items):
    """Sort the tests by their files, those of a file as they stand."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(Path(item.path).stem, len(places)))


@pytest.fixture(autouse=True)
def no_page(monkeypatch):
    """Sweeps in the tests' own process make no page, which would take longer than they do."""
    monkeypatch.setattr("experiments.sweep.page.is_possible", lambda: False)


@pytest.fixture(scope="module")
def plain_pictures():
    """Pictures with all their colours, hardly compressed, for pages whose words are tested: they take half the time."""

    def plain(picture):
        buffer = io.BytesIO()
        picture.save(buffer, "png", compress_level=1)
        return buffer.getvalue()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.figures.drawing._png", plain)
        yield
