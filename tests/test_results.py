"""The committed studies: table, README and picture are what the compact files give, and git tracks nothing else."""

import io
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from a3c_core.records import checkpoints
from a3c_core.system.tensorflow import import_tensorflow
from analysis.data.load import load_study
from analysis.figures import drawing, style
from analysis.figures.main import main_figure
from analysis.pages import gallery, readme, tables
from tests import capacity_words

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = (
    "published",
    "slides",
    "factors",
    "report",
    "dynamic",
    "map",
    "cliff",
    "edge",
    "edge_rate",
    "lockstep",
    "remedies",
    "dose",
    "workers",
    "entropy",
    "sensitivity",
    "frames",
    "paced",
    "algorithms",
    "table2",
    "frontier",
    "topologies",
    "batching",
    "hours",
    "ablation",
    "ablation_breakout",
    "memory",
    "pong",
    "breakout",
    "invaders",
    "pong_workers",
)
TRACKED = re.compile(  # of results/: no pages, one picture of a study or a game, and the weights of a checkpoint once
    r"README\.md|updates_sha256\.csv"
    r"|\w+/(study\.json|(runs|curves)\.parquet|tables/\w+\.csv|README\.md|notes\.md|conclusion\.md|main\.png)"
    r"|atari/\w+/(main\.gif|\d{12}/(manifest\.json|model\.keras))"
)
MOST_BYTES = 8e6  # of a study
PICTURES = (".png", ".gif", ".jpg", ".svg", ".webp")


@pytest.fixture(scope="module", params=STUDIES)
def committed(request):
    """A study's folder, and the study as its compact tables alone give it."""
    folder = RESULTS / request.param
    return folder, load_study(folder)


def test_tables_are_rebuilt_from_the_compact_files(committed):
    folder, study = committed
    for name, table in tables.all_tables(study).items():
        rebuilt = pd.read_csv(pd.io.common.StringIO(tables.csv(table)))
        pd.testing.assert_frame_equal(rebuilt, pd.read_csv(folder / "tables" / f"{name}.csv"), rtol=1e-4)


def test_the_readme_is_rebuilt_too(committed):
    folder, study = committed
    assert readme.render(study, folder) == (folder / "README.md").read_text(encoding="utf-8")


def test_the_readme_has_one_capacity_per_setting(committed):
    capacity_words.check(*committed, ("README.md",))


def test_every_planned_run_is_there_from_a_clean_commit(committed):
    _, study = committed
    assert len(study.missing) == 0
    assert not study.done["dirty"].any()
    assert study.done["episodes_sha256"].str.fullmatch("[0-9a-f]{64}").all()


def test_the_picture_is_rebuilt_too(committed):
    folder, study = committed
    part = study if main_figure(study).whole else gallery.settings_of(study)[0].part
    entry = main_figure(part)
    with style.paper():
        drawn = drawing.image(drawing.draw(entry.part(part), entry.panels))
    ours, theirs = (np.array(Image.open(png).convert("L"), float) for png in (io.BytesIO(drawn), folder / "main.png"))
    assert ours.shape == theirs.shape
    assert (np.abs(ours - theirs) > 64).mean() < 0.002  # other builds of the libraries place edges a little differently


def test_every_committed_study_is_tested():
    folders = {path.parent.name for path in RESULTS.glob("*/runs.parquet")}
    studies = {name for name in folders if re.fullmatch(r"(?!search_)[a-z0-9_]+", name)}
    assert studies - {"quick"} == set(STUDIES)


def git(*words: str) -> list[str]:
    """Return the lines that git says of this checkout; skip where there is no checkout."""
    if shutil.which("git") is None or not (RESULTS.parent / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "-c", f"safe.directory={RESULTS.parent}", *words]
    said = subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True, check=False)
    assert said.stderr == ""
    return said.stdout.splitlines()


def test_git_tracks_tables_text_one_picture_of_a_study_and_weights_once():
    names = [Path(line).relative_to("results").as_posix() for line in git("ls-files", "results")]
    assert len(names) > len(STUDIES)
    assert [name for name in names if not TRACKED.fullmatch(name)] == []
    pictures = Counter(Path(name).parent for name in names if Path(name).suffix in PICTURES)
    assert set(pictures.values()) == {1}
    assert {RESULTS / folder for folder in pictures} >= {RESULTS / name for name in STUDIES}
    sizes = Counter()
    for name in names:
        sizes[Path(name).parts[0]] += (RESULTS / name).stat().st_size
    assert max(sizes[name] for name in STUDIES) < MOST_BYTES


def test_what_is_built_is_ignored_by_default():
    built = ["index.html", "new/index.html", "new/figures/queue.png", "new/figures/main-1.svg", "new/cells/a/x.json"]
    built += ["atari/pong/000000000001/learner.npz", "atari/pong.gif"]
    kept = ["new/main.png", "new/README.md", "new/runs.parquet", "new/tables/runs.csv", "atari/qbert/main.gif"]
    asked = [f"results/{name}" for name in built + kept]
    assert git("check-ignore", "--no-index", *asked) == asked[: len(built)]


@pytest.mark.parametrize("game", ["pong", "breakout", "invaders"])
def test_a_committed_checkpoint_is_loaded_from_its_one_file_of_weights(game):
    checkpoint = checkpoints.load(RESULTS / "atari" / game)
    assert sorted(path.name for path in checkpoint.path.iterdir()) == ["manifest.json", "model.keras"]
    assert checkpoint.updates == int(checkpoint.path.name)
    import_tensorflow()
    import keras

    theirs = keras.models.load_model(checkpoint.path / "model.keras").get_weights()
    ours = checkpoint.model.spec.views(checkpoint.parameters).values()
    assert len(theirs) == len(ours)
    assert all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))
