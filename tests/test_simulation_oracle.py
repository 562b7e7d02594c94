"""A second opinion on virtual time: the master's exchange simulated once more, plainly, and compared with the records.

The oracle knows how long each episode was, by the program's own records, and nothing else of the run. From the settings
and the costs it computes when every gradient arrived and was dealt with, what its worker had pulled, how many waited
before it, and how many workers there were. It shares no code with the program, and is built differently: there is no
heap and no handlers, but a table of everybody's state, of which the next to change is looked for again and again. Only
the order in which costs are added up is the program's: two workers that played 20 and 60 steps, and 60 and 20, are done
at the same time but for the last bit, which decides who comes first.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
import pytest
import yaml

from a3c_core.config import RunConfig
from a3c_core.records.tables import UPDATE_TABLE, read_records
from a3c_core.train import train
from a3c_core.virtual.capacity import profile_of
from tests.random_settings import random_config, random_profile

MASK = (1 << 64) - 1
MASTER = -1


def uniform(words):
    """Return the next number in [0, 1) of xoshiro256++ (Blackman & Vigna 2019), whose state `words` is advanced."""

    def rotated(word, bits):
        return (word << bits | word >> (64 - bits)) & MASK

    a, b, c, d = words
    drawn = (rotated((a + d) & MASK, 23) + a) & MASK
    c, d = c ^ a, d ^ b
    words[:] = a ^ d, b ^ c, c ^ (b << 17 & MASK), rotated(d, 45)
    return (drawn >> 11) / 2**53


@dataclass
class Gradient:
    """What a worker hands over."""

    worker: int
    version: int  # that its worker played with
    started_s: float
    arrived_s: float = 0.0
    found: int = 0  # in the queue
    taken_s: float = 0.0


@dataclass
class Worker:
    """What a worker does: `away`, then `core`, then it may `wait`, or `apply` its gradient; `new` before it begins."""

    number: int
    holds: int  # version
    mail: int | None  # version in its mailbox
    doing: str = "new"
    ends_s: float = 0.0
    work_s: float = 0.0  # on a core, after it was away
    played: int = 0  # episodes
    waits: int = 0
    leaves: bool = False
    gradient: Gradient | None = None


@dataclass
class Oracle:
    """One run: N workers, a queue, a master."""

    config: RunConfig
    steps: dict  # of an episode, by (worker, number)
    now_s: float = 0.0
    crowding: float = 1.0
    version: int = 0
    served: int = 0
    begun: int = 0  # episodes
    written_up: int = 0
    busy_s: float = 0.0
    changed_at: int = 0
    next_number: int = 0
    workers: dict = field(default_factory=dict)
    queue: deque = field(default_factory=deque)
    blocked: deque = field(default_factory=deque)  # workers whose gradients the queue has no room for
    serving: list = field(default_factory=list)
    served_s: float = math.inf  # when that is done
    rows: list = field(default_factory=list)

    def __post_init__(self):
        self.costs, self.exchange = profile_of(self.config), self.config.gradients
        self.window = deque(maxlen=self.config.schedule.window)
        self.join(self.config.span.start, 0.0)

    def run(self):
        """Return a row for each gradient, in the order in which they were dealt with."""
        while (who := self.next()) is not None:
            if who == MASTER:
                self.finish()
            else:
                self.go_on(self.workers[who])
            self.share_cores()
        return self.rows

    def next(self):
        """Advance the clock to who is done next, and return that; the master comes first, then lower numbers."""
        ends = {worker.number: worker.ends_s for worker in self.workers.values() if worker.doing != "wait"}
        ends[MASTER] = self.served_s
        who = min(ends, key=lambda one: (ends[one], one))
        if ends[who] == math.inf:
            return None
        self.now_s = ends[who]
        return who

    # Costs

    def jitter(self, seconds, who, count):
        if self.costs.jitter == "none":
            return seconds
        seeds = np.random.SeedSequence(self.config.seed, spawn_key=(who, count, 1)).generate_state(8, np.uint64)
        words = seeds[:4].tolist()
        exponential = -math.log1p(-uniform(words))
        if self.costs.jitter == "exponential":
            return seconds * exponential
        variance = math.log(1 + self.costs.jitter_deviation**2)
        normal = math.sqrt(2 * exponential) * math.cos(2 * math.pi * uniform(words))
        return seconds * math.exp(math.sqrt(variance) * normal - variance / 2)

    def share_cores(self):
        """Stretch all work under way when more, or fewer, want the cores."""
        costs = self.costs
        workers = sum(worker.doing in ("core", "apply") for worker in self.workers.values())
        masters = int(self.served_s < math.inf)
        busy, crowding = workers + masters, 1.0
        if busy > costs.cores:
            threads = min(busy, costs.cores * costs.threads_per_core)
            second_threads = (threads - costs.cores) / (costs.cores * max(1, costs.threads_per_core - 1))
            crowding = busy / (costs.cores * (1 + (costs.threading_gain - 1) * second_threads))
            if costs.master_first and masters:
                crowding = max(1.0, workers / max(busy / crowding - masters, 0.05))
        factor, self.crowding = crowding / self.crowding, crowding
        for worker in self.workers.values():
            if worker.doing in ("core", "apply"):
                worker.ends_s += (worker.ends_s - self.now_s) * (factor - 1)
        if masters and not costs.master_first:
            longer_s = (self.served_s - self.now_s) * (factor - 1)
            self.served_s += longer_s
            self.busy_s += longer_s

    # Workers

    def join(self, count, at_s):
        for _ in range(count):
            self.workers[self.next_number] = Worker(self.next_number, self.version, self.version, ends_s=at_s)
            self.next_number += 1

    def go_on(self, worker):
        if worker.doing == "new":
            self.begin(worker)
        elif worker.doing == "away":
            self.work(worker)
        elif worker.doing == "core":
            self.hand_over(worker)
        else:
            self.apply_own(worker)

    def begin(self, worker):
        """Let a worker pull and play an episode, or leave."""
        costs, exchange = self.costs, self.exchange
        if worker.leaves or self.begun == self.config.episodes:
            del self.workers[worker.number]
            if not self.workers:
                self.look(idle=True)
            return
        loads = exchange.channel == "latest" or worker.mail is not None
        if exchange.channel == "latest":
            worker.holds = self.version
        elif loads:
            worker.holds, worker.mail = worker.mail, None
        steps = self.steps[worker.number, worker.played]
        worker.played += 1
        self.begun += 1
        worker.gradient = Gradient(worker.number, worker.holds, self.now_s)
        game_s = steps * self.config.environment.wait_s
        away_s = game_s + (costs.oversleep_s * costs.slowdown if game_s else 0.0)
        away_s += costs.pull_latency_s + costs.push_latency_s
        waits, worker.waits = worker.waits + (away_s > 0), 0
        play_s, gradient_s = costs.reset_s + costs.step_s * steps, costs.gradient_call_s + costs.gradient_step_s * steps
        exchange_s = costs.load_s * loads + play_s + gradient_s + costs.send_s
        worker.work_s = costs.slowdown * (exchange_s + costs.resume_s * waits)
        if away_s > 0:
            worker.doing, worker.ends_s = "away", self.now_s + away_s
        else:
            self.work(worker)

    def work(self, worker):
        taken_s = self.jitter(worker.work_s * self.crowding, worker.number + 1, worker.played)
        worker.doing, worker.ends_s = "core", self.now_s + taken_s

    def hand_over(self, worker):
        """Let a gradient arrive: there may be no room for it."""
        exchange, gradient = self.exchange, worker.gradient
        gradient.arrived_s, gradient.found = self.now_s, len(self.queue)
        if self.config.topology == "hogwild":
            apply_s = self.costs.slowdown * self.costs.update_s * self.crowding
            taken_s = self.jitter(apply_s, worker.number + 1, (1 << 40) + worker.played)
            worker.doing, worker.ends_s = "apply", self.now_s + taken_s
            gradient.taken_s = self.now_s
            return
        worker.doing = "wait"
        if exchange.queue == "unbounded" or len(self.queue) < exchange.queue_size:
            self.enqueue(worker)
        elif exchange.queue == "bounded":
            worker.waits += 1
            self.blocked.append(worker)
        else:
            self.write(gradient, "dropped")
            self.begin(worker)

    def apply_own(self, worker):
        """Let a worker change the parameters itself, where there is no master."""
        self.version += 1
        self.write(worker.gradient, "applied", self.version - 1 - worker.gradient.version)
        self.begin(worker)

    def enqueue(self, worker):
        self.queue.append(worker.gradient)
        self.look(idle=True)
        if self.exchange.pull == "after_apply":
            worker.waits += 1
        else:
            self.begin(worker)

    # Master

    def look(self, idle):
        """Let the master take gradients for an update, if it is free and has enough."""
        held = self.exchange.hold if self.workers else 0
        taken = min(len(self.queue) - held, self.exchange.batch)
        if self.served_s < math.inf or taken < 1:
            return
        costs = self.costs
        self.serving = [self.queue.popleft() for _ in range(taken)]
        for gradient in self.serving:
            gradient.taken_s = self.now_s
        receive_s, writing_s = costs.receive_s * taken, 0.0
        update_s = mail_s = 0.0
        if not all(self.is_too_old(gradient) for gradient in self.serving):
            empty = sum(worker.mail is None for worker in self.workers.values())
            mail_s = empty * costs.publish_s if self.exchange.channel == "mailbox" else 0.0
            update_s, writing_s = receive_s + costs.update_s + costs.read_s, costs.record_s * taken
            for _ in range(taken):
                self.written_up += 1
                if costs.stall_every and self.written_up % costs.stall_every == 0:
                    writing_s += costs.stall_s + costs.stall_growth_s * self.written_up
        seconds = costs.slowdown * (costs.wake_s * idle + (update_s or receive_s) + mail_s)
        crowding = 1.0 if costs.master_first else self.crowding
        taken_s = self.jitter((seconds + costs.slowdown * writing_s) * crowding, 0, self.served)
        self.busy_s += taken_s
        self.served_s = self.now_s + taken_s
        for _ in range(min(taken, len(self.blocked))):
            self.enqueue(self.blocked.popleft())

    def is_too_old(self, gradient):
        return self.exchange.bound is not None and self.version - gradient.version > self.exchange.bound

    def finish(self):
        """Make an update of what was taken."""
        serving, self.serving, self.served_s = self.serving, [], math.inf
        before = self.version
        fresh = [gradient for gradient in serving if not self.is_too_old(gradient)]
        if fresh:
            self.version += 1
            for worker in self.workers.values():
                if worker.mail is None:
                    worker.mail = self.version
        for gradient in serving:
            is_late = self.exchange.bound is not None and before - gradient.version > self.exchange.bound
            self.write(gradient, "dropped" if is_late else "applied", 0 if is_late else before - gradient.version)
        if self.exchange.pull == "after_apply":
            for gradient in serving:
                self.begin(self.workers[gradient.worker])
        self.look(idle=False)

    # Records and schedule

    def write(self, gradient, status, staleness=0):
        self.served += status == "applied"
        alive = sum(not worker.leaves for worker in self.workers.values())
        row = {
            "worker": gradient.worker,
            "version_pulled": gradient.version,
            "version": self.version,
            "staleness": staleness,
            "queue_length": gradient.found,
            "status": status,
            "workers_alive": alive,
            "started_s": gradient.started_s,
            "arrived_s": gradient.arrived_s,
            "applied_s": self.now_s,
            "service_s": 0.0 if status == "dropped" else self.now_s - gradient.taken_s,
            "master_busy_s": self.busy_s,
        }
        self.rows.append(row)
        self.window.append((self.now_s, self.busy_s, gradient.arrived_s - gradient.started_s))
        target = self.target(alive)
        self.changed_at = len(self.rows) if target != alive else self.changed_at
        self.join(target - alive, self.now_s + self.costs.worker_start_s * self.costs.slowdown)
        staying = [worker for worker in self.workers.values() if not worker.leaves]
        for worker in staying[target:] if target < alive else []:
            worker.leaves = True

    def target(self, alive):
        """Return how many workers the schedule asks for: the rules of docs and settings, in plain words."""
        span, schedule = self.config.span, self.config.schedule
        if span.start == span.end:
            return alive
        default = 0 if schedule.rule == "slides" else 1000
        spacing = default if schedule.spacing is None else schedule.spacing
        since = len(self.rows) - self.changed_at
        if span.auto:
            return self.auto_target(alive) if since >= max(spacing, alive) else alive
        if since < spacing or alive >= span.end:
            return alive
        full = len(self.window) == self.window.maxlen
        mean_s = sum(length_s for _, _, length_s in self.window) / len(self.window) if full else 0.0
        further_s = schedule.further_s or (10.0 if schedule.rule == "report" else 20.0)
        above_s = mean_s - schedule.first_s
        earned = max(1, math.ceil(above_s / further_s)) if above_s > 0 else 0
        if schedule.rule == "repeated":
            return min(alive + earned, span.end)
        target = max(alive, min(span.start + earned, span.end))
        return min(target, alive + 1) if schedule.rule == "report" else target

    def auto_target(self, alive):
        """Return the count at which the master would be as busy as asked, not far from the present one."""
        span, (first_s, first_busy_s, _), (last_s, last_busy_s, _) = self.config.span, self.window[0], self.window[-1]
        busy = min(1.0, (last_busy_s - first_busy_s) / (last_s - first_s)) if last_s > first_s else 0.0
        load = 2.0 if len(self.queue) > alive else max(busy, 0.01)
        asked = alive * self.config.schedule.auto_utilisation / load
        asked = math.floor(asked) if asked < alive else round(asked)
        near = min(max(asked, alive // 2), alive + max(1, alive // 2))
        return min(max(near, span.start), span.end)


MAILBOX = {"channel": "mailbox", "queue": "unbounded"}
CASES = {
    "pull at once": {},
    "pull after apply": {"exchange": {"pull": "after_apply"}},
    "mailboxes": {"exchange": MAILBOX},
    "mailboxes, after apply": {"exchange": {**MAILBOX, "pull": "after_apply"}},
    "an unbounded queue that overflows": {"workers": "40", "exchange": {"queue": "unbounded"}},
    "a short queue": {"workers": "20", "exchange": {"queue": "bounded", "queue_size": 2}},
    "a short queue, after apply": {
        "workers": "20",
        "exchange": {"queue": "bounded", "queue_size": 2, "pull": "after_apply"},
    },
    "a queue that drops": {"workers": "30", "exchange": {"queue": "dropping", "queue_size": 3}},
    "lognormal jitter": {"jitter": "lognormal"},
    "exponential jitter, mailboxes": {"jitter": "exponential", "exchange": MAILBOX},
    "batches": {"workers": "30", "exchange": {"queue": "unbounded", "batch": 4}},
    "held back": {"exchange": {"queue": "unbounded", "hold": 12}},
    "held back, in batches": {"exchange": {"queue": "unbounded", "hold": 5, "batch": 3}},
    "a bound on staleness": {"workers": "20", "exchange": {"queue": "unbounded", "bound": 6}},
    "a bound for batches": {"workers": "30", "exchange": {"queue": "unbounded", "bound": 6, "batch": 5}},
    "no master": {"topology": "hogwild"},
    "no master, jitter": {"topology": "hogwild", "jitter": "lognormal"},
    "no master, more workers": {
        "workers": "3->9",
        "topology": "hogwild",
        "schedule": {"further_s": 0.2, "spacing": 20},
    },
    "a slow game": {"environment": {"wait_s": 0.002}, "jitter": "lognormal"},
    "the slides' rule": {"workers": "3->9", "schedule": {"rule": "slides", "further_s": 0.2}},
    "the report's rule": {"workers": "3->9", "schedule": {"rule": "report", "further_s": 0.2, "spacing": 20}},
    "a repeated rule": {"workers": "2->20", "schedule": {"rule": "repeated", "further_s": 0.3, "spacing": 30}},
    "workers that come and go": {
        "workers": "auto",
        "schedule": {"auto_min": 2, "auto_max": 40, "spacing": 10},
        "exchange": {"queue": "unbounded"},
    },
    "come and go, after apply": {
        "workers": "auto",
        "schedule": {"auto_min": 2, "auto_max": 40, "spacing": 10},
        "exchange": {"pull": "after_apply"},
        "jitter": "lognormal",
    },
}
COSTS = {
    "plain": {},
    "far": {"pull_latency_s": 0.0517, "push_latency_s": 0.0213, "resume_s": 0.00307, "oversleep_s": 0.00113},
    "cores shared": {"cores": 4, "threads_per_core": 2, "threading_gain": 1.31},
    "cores shared, master first": {"cores": 3, "master_first": True, "resume_s": 0.00211},
    "a report's bookkeeping": {"record_s": 0.0041, "stall_every": 30, "stall_s": 0.303, "stall_growth_s": 0.00201},
}
BASIC = {
    "step_s": 0.0037193471,
    "gradient_step_s": 0.0011038657,
    "gradient_call_s": 0.0131727341,
    "reset_s": 0.0017429183,
    "load_s": 0.0013587729,
    "send_s": 0.0007136293,
    "wake_s": 0.0009281737,
    "receive_s": 0.0006473819,
    "update_s": 0.0171927463,
    "read_s": 0.0003198273,
    "publish_s": 0.0004918271,
    "worker_start_s": 0.3141592653,
    "slowdown": 1.1,
}


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("case", CASES)
def test_the_oracle_says_the_same(case, costs, tmp_path):
    schedule = {"first_s": 0.1, "window": 10, **CASES[case].get("schedule", {})}
    settings = {"workers": "8", "episodes": 250, "seed": 3, **CASES[case], "schedule": schedule}
    assert_alike(settings, {**BASIC, **COSTS[costs]}, tmp_path)


@pytest.mark.parametrize("seed", range(40))
def test_it_says_the_same_of_random_settings(seed, tmp_path):
    costs = random_profile(np.random.default_rng([seed, 1]))
    settings = random_config(np.random.default_rng([seed, 0]), "uniform").model_dump(mode="json")
    exchange = {**settings["exchange"], "overload_limit": None}  # every gradient is an episode's, and has an outcome
    assert_alike({**settings, "exchange": exchange, "learner": {}}, costs, tmp_path)


def assert_alike(settings, costs, folder):
    """Run settings at given costs, and compare the records with what the oracle says."""
    profile = folder / "profile.yaml"
    profile.write_text(yaml.safe_dump(costs))
    config = RunConfig.model_validate({**settings, "profile": str(profile)})
    train(config, folder / "run")
    episodes = read_records(folder / "run").to_pandas()
    theirs = read_records(folder / "run", UPDATE_TABLE).to_pandas()
    lengths = dict(
        zip(zip(episodes["worker"], episodes["worker_episode"], strict=True), episodes["steps"], strict=True)
    )
    ours = Oracle(config, lengths).run()
    assert len(ours) == len(episodes) == len(theirs) == config.episodes
    for name in ("workers_alive", "started_s", "master_busy_s"):
        theirs[name] = episodes[name]
    for name in ours[0]:
        column = [row[name] for row in ours]
        if name.endswith("_s"):
            np.testing.assert_allclose(column, theirs[name], rtol=1e-9, atol=1e-9, err_msg=name)
        else:
            assert column == theirs[name].tolist(), name
