"""Inputs that no command may take, generated from a seed: settings, grids, profiles, checkpoints, command lines."""

import json
import random
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from a3c_core.config import RunConfig
from a3c_core.models.dense import DenseModel
from a3c_core.optimizers import Optimizer
from a3c_core.records import checkpoints
from a3c_core.virtual.costs import CostProfile
from experiments.grid.settings import all_names, of_config
from tests.learner_cases import trained_parameters

LONG, DIGITS, DEEP = "x" * 5_000, "9" * 5_000, "[" * 3_000 + "]" * 3_000
HEAD = "name: g\nquestion: Why?\n"
GRID = f"{HEAD}base: {{episodes: 100, workers: 2}}\nseeds: 2\n"
PROFILE = "about: a test\nstep_s: 0.01\nupdate_s: 0.1\n"
MANY_CELLS = f"episodes: {list(range(1, 400))}, exchange.queue_size: {list(range(1, 400))}"
TAGGED = ["!!int abc", "!!float x", "!!bool maybe", "!!timestamp 2026-01-01", "!!binary aGk=", "!!set {a}", "!mine x"]
NEVER = ["{a: 1}", "[x, {y: z}]", "{a: {b: {c: [1]}}}", "[[[[1]]]]", *TAGGED]  # what no setting takes
NUMBERS = ["many", "1e999", "-1e400", "-7", "9" * 23, DIGITS, ".nan", "'5'", LONG, "0x10", "10 000"]
WORDS = ["bogus", "7", "~", "true", LONG, "'a b'", "'*'"]
WORKERS = ["0", "-3", "20->10", "1.5", "1000000000", "5->200000", "²", "ten", "10->", "[4]", LONG, DIGITS]
MANIFEST = ["format", "version", "model", "model.name", "model.settings", "optimizer", "sha256", "info", "info.config"]

SWEEP_OPTIONS = f"""\
--set ''            | --set =             | --set episodes      | --set =3            | --set seed=1
--set x=LONG        | --set LONG=1        | --set learner=3     | --set worker=3      | --set learner.gama=3
--set {"a." * 2_000}b=3                   | --set é=3           | --set exchange.queue.x=3
--set tracking.every=0                    | --set tracking.every=DIGITS
--set workers=5000 --set runtime=processes                      | --set workers=5000 --set runtime=threads
--seeds ''          | --seeds 0           | --seeds -1          | --seeds 1,1         | --seeds a
--seeds 1,,2        | --seeds 0,DIGITS    | --seeds DIGITS      | --seeds 1.5         | --seeds 0,x
--seeds 20000       | --seeds 1,[2]       | --seeds LONG        | --seeds 0,{"9" * 30}
--only ''           | --only workers      | --only seed=9       | --only sed=1        | --only seed=LONG
--only seed=0,x=2   | --only ,            | --only =            | --only LONG=1
--jobs 0            | --jobs -1           | --jobs many         | --jobs 1.5          | --jobs DIGITS
--grid nowhere      | --grid LONG         | --grid /            | --grid .            | --grid reprot
--grid g.yaml/x     | --grid {"a/" * 3_000}
--results LONG      | --results g.yaml    | --results g.yaml/x  | --results /proc/x   | --results {"a/" * 40}LONG
--backend cloud     | --address 1.2.3.4:5 | --fast              | --list              | --grid
"""
ADDRESSES = """\
http://[::1         | https://[           | sqlite://[          | carrier://x         | ftp://h/x
http://127.0.0.1:9  | http://127.0.0.1:99999                    | http://127.0.0.1:port
http://             | 'http://a b'        | http://127.0.0.1:9/LONG                   | LONG
./mlruns            | x                   | :                   | //                  | sqlite:///g.yaml
sqlite:///LONG      | sqlite:///none/m.db | sqlite:////
"""
COMMAND_LINES = {
    "run_sweep.py": "--sync --no-tracking | --sync --results LONG | --sync | LONG",
    "a3c_core.train": "--workers 0 | --workers LONG | --episodes x | --episodes DIGITS | --seed -1 | --set x"
    "| --set a=LONG | --set engine=os:system | --set model=os:nothing | --set algorithm=sys:path"
    "| --set topology=os:getcwd | LONG",
    "a3c.warm": "now | LONG | --fast",
    "experiments.replicate": "nowhere | LONG | --cells 0 | --jobs 0 | --cells many | --fast",
    "experiments.scale": "now | LONG | --fast",
    "a3c.benchmark": "speed | env --json . | env --json LONG | env --json /proc/x/y | env x | LONG"
    "| env --seconds 0 | env --seconds nan | env --seconds soon | env --seconds 1e9 | env --seconds LONG",
    "a3c.calibrate": "--engine fast | --transport x | --out . | --out LONG | --out /proc/x | LONG"
    "| --seconds 0 | --seconds -1 | --seconds inf | --seconds 1e999 | --seconds ''",
    "a3c.advise": "--episode 1s | --update 1s | --episode 0 --update 1s | --episode 1s --update 0s | '' | LONG"
    "| --episode 1x --update 1s | --episode -1s --update 1s | --episode DIGITS --update 1s | --episode nan --update 1s"
    "| --episode 1s --update 1s --jitter many | --episode 1s --update 1s --jitter -1 | --costs nowhere | --costs LONG"
    "| --episode 1s --update 1s --workers 0 | --episode 1s --update 1s --workers 4,,8 | --costs uniform --log t.csv"
    "| --episode 1s --update 1s --workers 1,2,3,4,5,6,7,8,9,10,11,12,13 | --costs uniform --episode 1s | --costs"
    "| --episode 1s --update 1s --queue endless | --episode 1s --update 1s --exchange never | --log | --log ''"
    "| --episode 1s --update 1s --cores 0 | --episode 1s --update 1s --batch 1.5 | --log LONG | --log ."
    "| --log nowhere.csv | --log runs:/x | --episode 1s --update 1s --aim 1"
    "| --episode 1s --update 1s --grows 0 | --episode 1s --update 1s --html ."
    "| --episode 1s --update 1s --html LONG | --episode 1s --update 1s --json . | --episode 1s --update 1s --profile ."
    "| --episode 1s --update 1s --group 8 --workers 4 | --episode 1s --update 1s --group 0"
    "| --episode 1s --update 1s --in-flight 0 | --episode 1s --update 1s --staleness -1"
    "| --episode 1s --update 1s --staleness x | --episode 1s --update 1s --sync 1x"
    "| --episode 1s --update 1s --sync-every 0 | --episode 1s --update 1s --sync-mode never"
    "| --episode 1s --update 1s --full x | --episode 1s --update 1s --curve 1:2"
    "| --episode 1s --update 1s --curve 1:2,2:x,3:4 | --episode 1s --update 1s --budget 4"
    "| --episode 1s --update 1s --jitter pareto:1 | --episode 1s --update 1s --jitter pareto:x"
    "| --budget 1 --log x | --split 4 --log x | --episode 1s --update 1s --group 8 --in-flight 4 --workers 9"
    "| --episode 1s --update 1s --what-if async | --serial 2 --log x | --episode 1s --update 1s --format verl"
    "| --episode 1s --update 1s --columns update=a,wait=b | --log x --format none | --log x --columns a"
    "| --log x --columns LONG | --episode 1s --update 1s --json /dev/null"
    "| --episode 1h --update 1ns | --measure nothing | --measure Pendulum-v1 | --seconds 0 | --costs uniform --pull 1s",
    "experiments.validate": f"--episodes 0 | --episodes {'9' * 30} | --episodes x | --episodes DIGITS | --fast",
    "a3c.play": "--seed 1 | --checkpoint LONG | --checkpoint . | --checkpoint '' | --checkpoint x --seed -1"
    "| --checkpoint . --episodes 0 | --checkpoint . --episodes DIGITS | --checkpoint . --max-steps x",
    "analysis.report": "nowhere | LONG | . | '' | a b | x --experiment y | x --out y | --experiment ../up"
    "| --experiment '' | --experiment . | --experiment / | --experiment a/b | --experiment LONG"
    "| --experiment x --tracking-uri carrier://x | --experiment x --tracking-uri http://[::1"
    "| --experiment x --tracking-uri sqlite:///none.db | --experiment x --tracking-uri sqlite:///LONG",
    "analysis.timeline": "nowhere | LONG | . | '' | a b | . --at 0 | . --at soon | . --seconds -1 | . --out .",
    "analysis.search": "nowhere | LONG | . | '' | a b | --fast",
    "analysis.notebooks": "--study nowhere | --study LONG | --study | x",
}


class BadInput(NamedTuple):
    """What a user might type, and the files around it."""

    command: str  # as docs/exit_codes.md calls it
    arguments: list[str]
    files: Mapping[str, bytes] = MappingProxyType({})

    def __str__(self) -> str:
        return f"{self.command} {self.arguments} {dict(self.files)}"[:400]


def sweep(*arguments: str, grid: str | bytes = GRID, profile: str = PROFILE) -> BadInput:
    content = grid if isinstance(grid, bytes) else grid.encode()
    always = ["--grid", "g.yaml", "--dry-run", "--no-tracking"]
    return BadInput("run_sweep.py", [*always, *arguments], {"g.yaml": content, "p.yaml": profile.encode()})


def bad_logs(draw: random.Random) -> Iterator[BadInput]:
    """Logs of workers and updates that are no logs, or contradict themselves."""
    sound = [f"{k % 3},{k},{k + 2.5},{k + 2.6},{k + 2.9}" for k in range(60)]
    head = "worker,start,end,update_start,update_end"

    def with_line(line: str) -> str:
        return "\n".join([head, *sound[:30], line, *sound[30:]]) + "\n"

    wrong = [
        "9,1,2,3",
        "9,1,2,3,4,5",
        "9,x,2,3,4",
        "9,1,,3,4",
        "9,1,2,3,",
        ",1,2,3,4",
        "9,,,,",
        "9,nan,2,3,4",
        "9,1,inf,3,4",
    ]
    wrong += [
        "9,5,4,70,71",
        "9,1,70,80,79",
        "9,1,70,60,71",
        "9,,,70,71",
        f"9,{LONG},2,3,4",
        f"9,1,{DIGITS},3,4",
        "0,1,2,70,71",
    ]
    wrong += [
        "9,1,2,50.7,50.9",
        "9,1,2,1e13,2e13",
        "9,1;2,2,3,4",
        '9,"1,2",3,4,5',
        '9,"1',
        "9,1 s,2,3,4",
        "9,0x1,2,3,4",
    ]
    heads = [
        "worker,start,end,update_start",
        "worker,start,start,end,update_start,update_end",
        "worker,begin,end,from,to",
    ]
    whole = ["", "\n\n", head, "\n".join([head, *sound[:5]]), DEEP, "[1, 2]", "a: 1", f"{head}\n" + "0,1,2,,\n" * 50]
    whole += [f"{name}\n" + "\n".join(sound) for name in heads] + [
        f"{head}\n" + "".join(f"0,{k},{k},{k},{k}\n" for k in range(40))
    ]
    for text in [*map(with_line, wrong), *whole]:
        yield BadInput("a3c.advise", ["--log", "t.csv"], {"t.csv": text.encode()})
    for blob in (bytes(range(128, 256)), draw.randbytes(3_000), b"PAR1" + draw.randbytes(500)):
        yield BadInput("a3c.advise", ["--log", "t.csv"], {"t.csv": blob})
        yield BadInput("a3c.advise", ["--log", "t.parquet"], {"t.parquet": blob})


def lines(text: str) -> Iterator[list[str]]:
    """Yield the command lines that stand in `text`, as their words."""
    for line in text.replace("\n", "|").split("|"):
        if line.strip():
            yield shlex.split(line.replace("LONG", LONG).replace("DIGITS", DIGITS))


def bad_settings(draw: random.Random) -> Iterator[BadInput]:
    """Every setting with values that it can't have, on the command line and in each part of a grid."""
    known = of_config(RunConfig())  # those of other parts are refused whatever their value
    for name in all_names():
        if name in known and name not in ("seed", "workers"):
            for value in draw.sample(_refused(name), 3):
                yield draw.choice(_ways_to_set(name, value))
    for workers in WORKERS:
        yield sweep(grid=GRID.replace("workers: 2", f'workers: "{workers}"'))


def _refused(name: str) -> list[str]:
    """Return values that the setting can't have."""
    section: Any = RunConfig
    *groups, last = name.split(".")
    for group in groups:
        section = type(getattr(section(), group))
    kinds = str(section.model_fields[last].annotation)
    special = {
        "environment.id": ["Pong", "CartPole-v1", "Pendulum-v1", "nowhere:Game-v0", "a:b:c", "'a b'", LONG, "3"],
        "profile": ["nowhere", ".", LONG, "/", "3", "'../x'"],
        "pace.profile": ["nowhere", ".", LONG, "/", "3", "'../x'"],
        "gpus": ["[-1]", "[0.5]", "0", "[99999999999]", "[true]"],
    }
    if "bool" in kinds:
        return [*NEVER, "1", "maybe", "0.0"]
    numeric = "int" in kinds or "float" in kinds
    return NEVER + special.get(name, NUMBERS if numeric else WORDS)


def _ways_to_set(name: str, value: str) -> list[BadInput]:
    return [
        sweep("--set", f"{name}={value}", grid=HEAD),
        sweep(grid=f"{HEAD}base:\n  {name}: {value}\n"),
        sweep(grid=f"{HEAD}axes:\n  {name}: [{value}]\n"),
        sweep(grid=f"{HEAD}cases:\n  one:\n    {name}: {value}\n"),
    ]


def bad_grids(draw: random.Random) -> Iterator[BadInput]:
    """Grid files of the wrong shape, or of no shape at all."""
    whole = ["", "- a", "text", "[", "{", "a: *b", "a: &b 1\nc: *b", "a: 1\na: 2", DEEP, f"x: {DEEP}", "\x00", "\ufeff"]
    whole += [
        "<<: {a: 1}",
        "? [a]\n: 1",
        "a: " * 2_000,
        "{a: " * 500,
        "- " * 3_000,
        "%YAML 9.9\n---\na: 1",
        "a\n---\nb",
    ]
    further = ["sedes: 3", f"{LONG}: 1", "axes: {seed: [1]}", "axes: {workers: [4]}"]
    whole += [f"{GRID}{line}\n" for line in [*further, "axes: {learner.gamma: [0.5, 5e-1]}"]]
    whole += [f"{HEAD}axes: {{{axis}}}\n" for axis in (f"profile: [{LONG}]", f"engine: [{'é' * 150}]", MANY_CELLS)]
    for text in whole:
        yield sweep(grid=text)
    for blob in (bytes(range(128, 256)), b"\xff\xfe" + GRID.encode("utf-16-le"), draw.randbytes(4_000)):
        yield sweep(grid=blob)
    for key in ("name", "question", "base", "axes", "cases", "seeds", "tracking"):
        rest = [line for line in GRID.splitlines() if not line.startswith(key)]
        for value in ["[]", "''", "{a: {b: {c: 1}}}", *([] if key == "question" else [LONG]), *draw.sample(TAGGED, 3)]:
            yield sweep(grid="\n".join([*rest, f"{key}: {value}"]))


def bad_profiles(draw: random.Random) -> Iterator[BadInput]:
    """Cost profiles with typos, values of the wrong kind, and no YAML."""
    whole = ["", "[]", "text", DEEP, f"a: {DEEP}", "a: *b", f"{PROFILE}step_s: 1\n", "step_s: 1", "\x00", "{a: " * 500]
    whole += [f"{PROFILE}{name[:-1]}: 1\n" for name in CostProfile.model_fields]
    whole += [f"{PROFILE}{LONG}: 1\n", f"{PROFILE}updates_s: 1\n", PROFILE.replace("0.01", "-0.01")]
    for name in [name for name in CostProfile.model_fields if f"{name}:" not in PROFILE]:
        kinds = NUMBERS if name not in ("jitter", "master_first") else ["bogus", "3"]
        whole.append(f"{PROFILE}{name}: {draw.choice([*kinds, *NEVER])}\n")
    for text in whole:
        yield sweep("--set", "profile=p.yaml", profile=text)


def bad_command_lines() -> Iterator[BadInput]:
    """Options that no command has, and values that no option takes."""
    for words in lines(SWEEP_OPTIONS):
        yield sweep(*words, grid=GRID.replace(", workers: 2", ""))
    for [address] in lines(ADDRESSES):
        yield BadInput("run_sweep.py", ["--grid", "g.yaml", "--tracking-uri", address], {"g.yaml": GRID.encode()})
    for command, text in COMMAND_LINES.items():
        for words in lines(text):
            yield BadInput(command, words)


def bad_checkpoints(draw: random.Random, folder: Path) -> Iterator[BadInput]:
    """Checkpoints with manifests of another shape, most of them with the right digest."""
    files = sound_checkpoint(folder)
    manifest = json.loads(files["manifest.json"])
    for text in (
        "",
        "{",
        "[]",
        "null",
        "3",
        '"x"',
        "{}",
        DEEP,
        '{"a": ' * 3_000,
        DIGITS,
        json.dumps({**manifest, "x": 1}),
    ):
        yield play(files, text)
    for path in MANIFEST:
        for value in draw.sample([None, [], 3, "x", [[1]], LONG, -1], 3):
            yield play(files, forged(manifest, path, value))
    for path in ("optimizer.updates", "optimizer.rejected", "optimizer.name"):
        for value in draw.sample([None, [], "x", {"a": 1}, True, -1, 0.5], 3):
            yield play(files, forged(manifest, path, value))
    for name, value in (
        ("units", -1),
        ("units", 10**12),
        ("units", "x"),
        ("observation_shape", []),
        ("actions", 3),
        ("x", 1),
    ):
        yield play(files, forged(manifest, "model.settings", {name: value}))
    for name in ("../../secret", "/etc/hostname", "", "manifest.json/x", LONG):
        yield play(files, forged(manifest, "sha256", {**manifest["sha256"], name: "0" * 64}))
    for value in (
        3,
        [],
        "x",
        {"reward": 1},
        {"x": 1},
        *({"id": name} for name in (3, "mine:Game-v0", "Pong", "CartPole-v1")),
    ):
        yield play(files, forged(manifest, "info.config.environment", value))


def sound_checkpoint(folder: Path) -> dict[str, bytes]:
    """Return the files of a checkpoint that can be played."""
    config = {"config": RunConfig().model_dump(mode="json")}
    optimizer = Optimizer(DenseModel().spec.size)
    path = checkpoints.save(folder, "dense", DenseModel(), trained_parameters(), optimizer, config)
    return {file.name: file.read_bytes() for file in path.iterdir()}


def forged(manifest: dict[str, Any], path: str, value: Any) -> str:
    """Return the manifest with another value in it, and with the digest that makes it look sound."""
    copy = json.loads(json.dumps(manifest))
    *groups, last = path.split(".")
    level = copy
    for group in groups:
        level = level[group]
    level[last] = value
    return json.dumps({**copy, checkpoints._OWN_DIGEST: checkpoints._digest(copy)})


def play(files: dict[str, bytes], manifest: str | bytes) -> BadInput:
    content = manifest if isinstance(manifest, bytes) else manifest.encode()
    there = {f"run/{name}": data for name, data in {**files, "manifest.json": content}.items()}
    return BadInput("a3c.play", ["--checkpoint", "run", "--episodes", "1", "--max-steps", "50"], there)


def damaged_files(draw: random.Random, folder: Path) -> Iterator[BadInput]:
    """Sound files with some bytes replaced, added or lost: such a grid or profile may still be sound."""
    files = sound_checkpoint(folder)
    for _ in range(60):
        yield sweep(grid=_damaged(draw, GRID.encode()))
        yield sweep("--set", "profile=p.yaml", profile=_damaged(draw, PROFILE.encode()).decode("latin-1"))
    for _ in range(20):
        name = draw.choice(sorted(files))
        damaged = {**files, name: _damaged(draw, files[name])}
        yield play(damaged, damaged["manifest.json"])


def _damaged(draw: random.Random, content: bytes) -> bytes:
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(content) + 1)
        content = content[:place] + draw.randbytes(draw.randint(0, 3)) + content[place + draw.randint(0, 3) :]
    return content
