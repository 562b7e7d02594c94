"""A synthetic asynchronous trainer of sleeping processes, which writes its log in AReaL's formats: nothing is learned.

    python sleeping_trainer.py --seconds 60 --out run    # needs nothing but Python
    a3c advise --log run --staleness 2

Generators are processes that sleep as long as a rollout takes: lognormal, with a heavy tail. A group of rollouts of one
prompt is complete with its slowest. Admission is by age, by AReaL's rule; the trainer sleeps for an update, then for a
weight sync, during which generation pauses and goes on afterwards. Since everything sleeps, two cores do for dozens of
generators, and a busy machine spoils little.
"""

import argparse
import json
import math
import multiprocessing as mp
import random
import time
from collections import deque
from multiprocessing.connection import Connection, wait
from pathlib import Path


def generate(pipe: Connection, running: mp.Event, pausing: mp.Event) -> None:
    """Sleep as long as each rollout takes, not counting pauses; until told to end."""
    while (seconds := pipe.recv()) is not None:
        left = seconds
        while left > 0:
            running.wait()
            began = time.monotonic()
            pausing.wait(timeout=left)  # wakes up early for a pause
            left -= time.monotonic() - began
        pipe.send(time.time())


class Trainer:
    """Admits rollouts, collects groups, and trains on batches of them, all in one loop over events."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.chance = options, random.Random(options.seed)
        self.running, self.pausing = mp.Event(), mp.Event()
        self.running.set()
        self.pipes: list[Connection] = []
        for _ in range(options.slots):
            ours, theirs = mp.Pipe()
            mp.Process(target=generate, args=(theirs, self.running, self.pausing), daemon=True).start()
            self.pipes.append(ours)
        self.free = deque(self.pipes)
        self.at_work: dict[Connection, tuple[int, float]] = {}  # the group and start of each rollout
        self.left: dict[int, int] = {}  # rollouts of a group that are not done
        self.version_of: dict[int, int] = {}
        self.queue: deque[int] = deque()
        self.version = self.admitted = self.to_begin = self.group = 0
        self.sessions: list[dict] = []
        self.began = time.time()

    def admit(self) -> None:
        """Begin rollouts on free slots, as far as the bound on age allows."""
        options = self.options
        while self.free:
            if self.to_begin == 0:
                groups = options.batch // options.group
                if self.admitted + 1 > (options.staleness + self.version + 1) * groups:
                    return
                self.group += 1
                self.admitted += 1
                self.to_begin = self.left[self.group] = options.group
                self.version_of[self.group] = self.version
            self.to_begin -= 1
            pipe = self.free.popleft()
            sigma = math.sqrt(math.log1p(options.spread**2))
            pipe.send(options.rollout * self.chance.lognormvariate(-(sigma**2) / 2, sigma))
            self.at_work[pipe] = self.group, time.time()

    def collect(self, until: float) -> None:
        """Take up what the generators finish, and keep them busy, until that time or until a batch is there."""
        endless = math.isinf(until)
        while not (endless and len(self.queue) * self.options.group >= self.options.batch):
            remaining = None if endless else until - time.monotonic()
            if remaining is not None and remaining <= 0:
                return
            for pipe in wait(list(self.at_work), timeout=remaining):
                ended = pipe.recv()
                group, began = self.at_work.pop(pipe)
                began, ended = round(began - self.began, 4), round(ended - self.began, 4)
                phases = {"generate": [{"start_ts": began, "end_ts": ended}]}
                session = {"task_id": group, "session_id": len(self.sessions), "rank": 0, "status": "accepted"}
                times = {"submit_ts": began, "finalized_ts": ended, "total_s": round(ended - began, 4)}
                self.sessions.append({**session, **times, "phases": phases})
                self.free.append(pipe)
                self.left[group] -= 1
                if self.left[group] == 0:
                    self.queue.append(group)
            self.admit()

    def train(self) -> tuple[float, float, float, list[int]]:
        """Run one step; return the seconds of its wait, update and sync, and the staleness of its groups."""
        options = self.options
        began = time.monotonic()
        self.admit()
        self.collect(math.inf)
        waited = time.monotonic() - began
        groups = [self.queue.popleft() for _ in range(options.batch // options.group)]
        stale = [self.version - self.version_of[group] for group in groups]
        trained = time.monotonic()
        self.collect(trained + options.update)
        synced = time.monotonic()
        self.running.clear()
        self.pausing.set()  # generation pauses
        time.sleep(options.sync)
        self.pausing.clear()
        self.running.set()
        self.version += 1
        return waited, synced - trained, time.monotonic() - synced, stale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, default=32, help="generators")
    parser.add_argument("--group", type=int, default=4, help="rollouts of one prompt")
    parser.add_argument("--batch", type=int, default=32, help="rollouts of an update")
    parser.add_argument("--staleness", type=float, default=2.0, help="the bound on age")
    parser.add_argument("--rollout", type=float, default=0.5, help="seconds, mean")
    parser.add_argument("--spread", type=float, default=1.0, help="standard deviation of a rollout, of a mean of 1")
    parser.add_argument("--update", type=float, default=0.4, help="seconds")
    parser.add_argument("--sync", type=float, default=0.1, help="seconds in which generation pauses")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("sleeping"), help="a folder for the logs")
    options = parser.parse_args()
    (options.out / "session_tracer").mkdir(parents=True, exist_ok=True)
    trainer = Trainer(options)
    tables, stale = [], []
    began = time.monotonic()
    while time.monotonic() < began + options.seconds:
        waited, trained, synced, ages = trainer.train()
        row = {"timeperf/rollout": waited, "timeperf/train_step": trained, "timeperf/update_weights": synced}
        tables.append("\n".join(f"│ {key} │ {value:.4e} │" for key, value in row.items()))
        stale.append(sum(ages) / len(ages))
    seconds = time.monotonic() - began
    for pipe in trainer.at_work:
        trainer.running.set()
        pipe.send(None)
    lines = "".join(f"{json.dumps(session)}\n" for session in trainer.sessions)
    (options.out / "session_tracer" / "sessions-r0.jsonl").write_text(lines)
    (options.out / "trainer.log").write_text("\n".join(tables) + "\n")
    late = stale[len(stale) // 4 :]
    result = {"rollouts_per_s": options.batch * len(tables) / seconds, "staleness": sum(late) / len(late)}
    print(json.dumps({name: round(value, 4) for name, value in result.items()}))


if __name__ == "__main__":
    main()
