"""The page in a real browser: its numbers are what Python computed, and it fits a desk and a phone."""

import json
import re

import pytest

from a3c.advise.__main__ import main
from a3c.advise.simulator import System, simulate
from tests.browser import INSTALLED, browser
from tests.sweeps import ROOT

HAND = ["--episode", "518ms", "--update", "31.6ms", "--workers=4,10,20"]
PAGES = {
    "by hand": HAND,
    "waiting": [*HAND, "--exchange", "after_apply", "--jitter", "0.2"],
    "groups": [*HAND[:4], "--batch", "8", "--group", "4", "--staleness", "2", "--workers=8,64"],
    "a trainer": ["--log", str(ROOT / "docs/advise/logs/verl_async.log")],
    "turns": ["--log", str(ROOT / "docs/advise/logs/slime.log")],
    "no times": ["--log", str(ROOT / "docs/advise/logs/sample_factory_overloaded.log")],
}
in_a_browser = pytest.mark.skipif(not INSTALLED, reason="chromium and chromedriver are not installed")
CHOOSE = """
const input = document.getElementById(`axis${arguments[0]}`);
input.value = arguments[1];
input.dispatchEvent(new Event("input"));
return window.advice;
"""


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


def made(name, folder):
    """Write the page of a command line; return it and the data in it."""
    main([*PAGES[name], "--html", str(folder / "page.html"), "--json", str(folder / "numbers.json")])
    page = (folder / "page.html").read_text()
    return page, json.loads(re.search(r"^const DATA = (.*);$", page, re.MULTILINE)[1])


@pytest.mark.parametrize("name", PAGES)
def test_every_setting_of_the_sliders_was_simulated(name, tmp_path):
    page, data = made(name, tmp_path)
    count = 1
    for axis in data["axes"]:
        count *= len(axis["texts"])
        assert 0 <= axis["start"] < len(axis["texts"])
    assert len(data["values"]) == len(data["texts"]) == (count if data["axes"] else 0)
    assert "http" not in page
    assert "heap" not in page.lower()  # no simulation in JavaScript
    assert len(page) < 1_000_000


def test_the_numbers_are_those_of_the_simulator(tmp_path):
    _, data = made("by hand", tmp_path)
    workers, cycle, update, exchange = data["axes"]
    place = 0
    for axis, chosen in zip(data["axes"], (workers["texts"].index("10"), 0, 3, 2), strict=True):
        place = place * len(axis["texts"]) + chosen
    expected = simulate(System(10, 0.518 * 0.5, 0.0, 0.0316 * 2.0, waits=True))
    assert (cycle["texts"][0], update["texts"][3], exchange["texts"][2]) == (
        "× 0.5", "× 2", "wait for their update",
    )  # fmt: skip
    assert data["values"][place][:3] == pytest.approx(
        [expected.throughput, expected.utilisation, expected.staleness], rel=1e-3
    )


def test_where_the_queue_grows_the_page_says_so(tmp_path):
    _, data = made("by hand", tmp_path)
    place = data["axes"][0]["texts"].index("20")
    rest = data["axes"][1:]
    for axis in rest:
        place = place * len(axis["texts"]) + axis["start"]
    stale = data["metrics"].index("updates stale, mean")
    assert (data["texts"][place][stale], data["values"][place][stale]) == ("grows", None)


@in_a_browser
@pytest.mark.parametrize("name", PAGES)
def test_sliders_choose_what_python_computed(name, window, tmp_path):
    _, data = made(name, tmp_path)
    window.open(f"file://{tmp_path}/page.html")
    for number, axis in enumerate(data["axes"]):
        if len(axis["texts"]) < 2:
            continue
        for chosen in (0, len(axis["texts"]) - 1, axis["start"]):
            seen = window.run(CHOOSE, number, chosen)
            place = 0
            for one, at in zip(data["axes"], seen["chosen"], strict=True):
                place = place * len(one["texts"]) + at
            assert seen["chosen"][number] == chosen
            assert (seen["texts"], seen["values"]) == (data["texts"][place], data["values"][place])
            assert all(text in window.text() for text in seen["texts"])
    assert window.complaints() == []
    assert json.loads((tmp_path / "numbers.json").read_text())["words"][0] in window.text()


@in_a_browser
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["by hand", "a trainer"])
def test_it_fits_a_desk_and_a_phone(name, width, window, tmp_path):
    window.resize(max(width, 500))  # a browser's window is no narrower: the page goes into a frame of the width wanted
    page, _ = made(name, tmp_path)
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
