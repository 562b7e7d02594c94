"""The longest files first, so that two workers (`make test`) are done at about the same time."""

from pathlib import Path

LONGEST_FIRST = (
    "test_storm",
    "test_tracking",
    "test_extending",
    "test_sweep",
    "test_games",
    "test_results",
    "test_processes",
    "test_losses",
    "test_report",
    "test_mlflow_ui",
    "test_tracking_end",
    "test_train",
    "test_bad_state",
    "test_setup",
    "test_lost_records",
)


def pytest_collection_modifyitems(items):
    """Sort the tests by their files, those of a file as they stand."""
    places = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: places.get(Path(item.path).stem, len(places)))
