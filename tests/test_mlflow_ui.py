"""What a user sees in MLflow, in a real browser: the cells of a sweep side by side, by episodes and by time."""

import pytest

from a3c_core.records.tables import read_records
from experiments.tracking.mirror import Tracker
from experiments.tracking.store import connect
from tests.browser import INSTALLED, browser
from tests.mlflow_server import free_port, mlflow_server, new_database
from tests.sweeps import wait_for
from tests.test_tracking import make_study, runs_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not INSTALLED, reason="chromium and chromedriver are not installed"),
]
CELLS = {f"{count} workers, seed 0": f"workers={count},seed=0" for count in (4, 10, 20, 40)}  # by the runs' names
NAMES = list(CELLS)
CHOSEN = NAMES[:3]
ROW = """[...document.querySelectorAll('.ag-pinned-left-cols-container [role=row]')]
    .find(row => row.innerText.split('\\n').includes(arguments[0]))"""
LINK = "[...document.querySelectorAll('a')].find(a => a.innerText == arguments[0])"
CURVES = "return [...document.querySelectorAll('.js-plotly-plot')].flatMap(p => p.data.map(t => [t.name, t.x, t.y]))"
CHOOSE = "[...document.querySelectorAll('label')].find(label => label.innerText.trim() == arguments[0]).click()"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A tracked study of 4, 10, 20 and 40 workers, and a server that shows it: (study, its runs, address)."""
    folder = tmp_path_factory.mktemp("served")
    database = new_database(folder)
    uri = f"sqlite:///{database}"
    base = {"episodes": 600, "exchange": {"channel": "mailbox", "queue": "unbounded"}}
    study = make_study(folder, "shown", base=base, axes={"workers": [4, 10, 20, 40]})
    client = connect(uri)
    tracker = Tracker(client, uri, study.path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.tracking.cell_run.collect", lambda cell, into: [])  # no pictures, which take seconds
        tracker.sync()
    tracker.end_sweeps()
    port = free_port()
    with mlflow_server(database, port):
        yield study, runs_of(client, "shown"), f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


def test_three_runs_chosen_in_the_table_compare_by_episodes_and_by_time(served, window):
    study, runs, address = served
    window.open(f"{address}#/experiments/{runs[CELLS[NAMES[0]]].info.experiment_id}/runs")
    wait_for(lambda: window.run(f"return !!({ROW})?.querySelector('button')", "sweep shown"))
    window.run(f"({ROW}).querySelector('button').click()", "sweep shown")  # shows the cells below the sweep
    for name in CHOSEN:
        wait_for(lambda name=name: window.run(f"return !!({ROW})", name))
        window.run(f"({ROW}).querySelector('input[type=checkbox]').click()", name)
    compare = "document.querySelector('[data-testid=runs-compare-button]')"
    wait_for(lambda: window.run(f"return {compare}?.disabled === false"))
    window.run(f"{compare}.click()")
    wait_for(lambda: "Comparing 3 Runs from 1 Experiment" in window.text())
    wait_for(lambda: window.run(f"return !!({LINK})", "episode/score"))
    shown = window.text()
    assert all(words in shown for words in [*CHOSEN, "Parallel Coordinates", "learner.learning_rate"])
    window.run(f"({LINK}).click()", "episode/score")
    wait_for(lambda: set(curves(window)) == set(CHOSEN))
    by_episode = curves(window)
    assert {max(x) for x, _ in by_episode.values()} == {599}
    window.run(CHOOSE, "Time (Relative)")
    wait_for(lambda: all(curves(window)[name] != by_episode[name] for name in CHOSEN))
    for name, (seconds, _) in curves(window).items():
        clock = read_records(study.cell(CELLS[name]))["applied_s"].to_numpy()
        assert max(seconds) == pytest.approx(clock[-1] - clock[0], abs=0.01)


def curves(window):
    """Return {run: (x, y)} of the plot on the page."""
    return {name: (x, y) for name, x, y in window.run(CURVES) if x}


def test_the_sweeps_page_links_to_its_curves(served, window):
    _, runs, address = served
    parent = runs["sweep shown"]
    window.open(f"{address}#/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}")
    link = f"return ({LINK})?.href"
    wait_for(lambda: window.run(link, "Mean score by episodes"))
    window.open(window.run(link, "Mean score by episodes"))
    wait_for(lambda: set(curves(window)) == set(NAMES))
