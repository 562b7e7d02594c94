"""The page in a real browser: its numbers are the command's, and it fits a desk and a phone."""

import json

import pytest

from a3c.advise.__main__ import main
from a3c.advise.distributions import lognormal
from a3c.advise.simulator import System, simulate
from tests.browser import INSTALLED, browser

pytestmark = pytest.mark.skipif(not INSTALLED, reason="chromium and chromedriver are not installed")
ASKED = "--workers=4,10,20"
PAGES = {
    "by hand": ["--episode", "518ms", "--update", "31.6ms", "--jitter", "0.2", ASKED],
    "waiting": ["--episode", "1s", "--update", "90ms", "--latency", "20ms", "--exchange", "after_apply", ASKED],
    "crowded": [
        "--episode",
        "1s",
        "--update",
        "90ms",
        "--cores",
        "4",
        "--jitter",
        "exponential",
        "--queue",
        "8",
        ASKED,
    ],
    "batches": ["--episode", "1s", "--update", "300ms", "--batch", "3", "--shards", "2", "--jitter", "0.7", ASKED],
}
SLIDERS = {"deviation": 0.65, "cycle_s": 0.3, "service_s": -1, "latency_s": 40, "workers": 23, "queue": 5}
SET = """
const input = document.getElementById(arguments[0]);
input.value = arguments[1];
input.dispatchEvent(new Event("input"));
cancelAnimationFrame(asked);
redraw();
return window.advice;
"""


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


def opened(window, name, folder):
    """Open the page of a command line; return the command's numbers."""
    numbers = folder / "numbers.json"
    main([*PAGES[name], "--html", str(folder / "page.html"), "--json", str(numbers)])
    window.open(f"file://{folder}/page.html")
    return json.loads(numbers.read_text())


def three_digits(outcome):
    return {name: float(f"{value:.3g}") for name, value in outcome.items()}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_the_numbers_of_the_command(name, window, tmp_path):
    command = opened(window, name, tmp_path)
    for row in command["table"]:
        seen = window.run(SET, "workers", row["workers"])
        assert seen["state"]["workers"] == row.pop("workers")
        assert three_digits(seen["outcome"]) == three_digits(row)
    assert (seen["n0"], seen["n_star"]) == (pytest.approx(command["n0"]), pytest.approx(command["n_star"]))
    assert window.complaints() == []


def test_every_slider_gives_what_the_same_costs_give_the_command(window, tmp_path):
    opened(window, "by hand", tmp_path)
    for slider, value in SLIDERS.items():
        state = window.run(SET, slider, value)["state"]
        deviation = state.pop("deviation")
        expected = simulate(System(**state), lognormal(deviation), lognormal(deviation))
        assert three_digits(window.run("return window.advice.outcome")) == three_digits(expected._asdict())
    assert (state["workers"], state["queue"], state["cycle_s"]) == (23, 5, pytest.approx(10**0.3, rel=0.02))
    assert window.run("return document.getElementById('throughput').textContent") == f"{expected.throughput:.3g}"


def test_it_says_what_overflows(window, tmp_path):
    opened(window, "by hand", tmp_path)
    window.run(SET, "workers", 20)
    assert "20 workers overflow" in window.text()
    window.run(SET, "workers", 10)
    assert "workers overflow" not in window.run("return document.getElementById('overflows').textContent")


@pytest.mark.parametrize("width", [1400, 390])
def test_it_fits_a_desk_and_a_phone(width, window, tmp_path):
    window.resize(max(width, 500))  # a browser's window is no narrower: the page goes into a frame of the width wanted
    opened(window, "by hand", tmp_path)
    page = (tmp_path / "page.html").read_text()
    (tmp_path / "frame.html").write_text("<!doctype html><link rel=icon href='data:,'><body style='margin:0'>")
    window.open(f"file://{tmp_path}/frame.html")
    window.run(
        """const frame = document.createElement("iframe");
        frame.srcdoc = arguments[0];
        frame.style = `border:0;height:1100px;width:${arguments[1]}px`;
        document.body.append(frame);
        return new Promise(done => frame.onload = () => done(true));""",
        page,
        width,
    )
    inside = "const frame = document.querySelector('iframe').contentWindow;"
    assert window.run(f"{inside} return frame.innerWidth") == width
    assert window.run(f"{inside} return frame.document.documentElement.scrollWidth") <= width
    assert window.run(f"{inside} return frame.document.querySelectorAll('svg').length") == 3
    assert window.complaints() == []
