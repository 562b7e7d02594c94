"""One round: the command under fire, damaged and resumed, until it is finished and counted."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.storm import checks, damages, processes
from tests.storm.attempts import LIMIT_S, Command, Ending
from tests.storm.plans import HELPERS, Attempt, Plan
from tests.storm.tally import Tally
from tests.sweeps import COMMAND, write_grid

CALM = Attempt()
CALM_ATTEMPTS = 3
GRACE_S = 300.0  # for the last process to end: an orphan stays for good, but on a busy machine an end can take minutes
STUDY = "storm"


class Round:
    """A plan, carried out in a folder of its own."""

    def __init__(self, plan: Plan, folder: Path):
        self.plan, self.tally = plan, Tally()
        self.mark = f"{os.getpid()}-{plan.seed}-{plan.number}"
        self._folder, self._results, self._temporary = folder, folder / "results", folder / "tmp"
        self._damaged: Path | None = None  # since the last attempt that ended well
        self._episodes = plan.settings["episodes"]

    def carry_out(self) -> Tally:
        """Do what the plan says, resume until finished, count, and leave no process behind."""
        self._results.mkdir(parents=True)
        self._temporary.mkdir()
        in_memory = checks.shared_memory()
        try:
            for attempt in self.plan.attempts:
                self._make(attempt)
            self._finish()
            self.tally.find(f"left in /dev/shm: {name}" for name in checks.orphaned_memory(in_memory))
        finally:
            processes.kill_all(self.mark)
        return self.tally

    def _make(self, attempt: Attempt) -> bool:
        """Run the command once, see how it ends, and damage something; return whether it says that all is done."""
        ending = self._run(self._command(), attempt)
        self._judge(attempt, ending)
        if attempt.damages or not attempt.is_hasty:
            self._see_them_gone()
        if not attempt.is_damaged_running:
            self._damage(attempt)
        return ending.code == 0

    def _finish(self) -> None:
        """Resume in calm until the command says that all is done, and look at what is left."""
        self._see_them_gone()
        if self.plan.kind == "long-lived master":
            return
        if not any(self._make(CALM) for _ in range(CALM_ATTEMPTS)):
            self.tally.find([f"not finished after {CALM_ATTEMPTS} calm attempts"])
        if not any(attempt.is_damaged_running for attempt in self.plan.attempts):
            self._check_logs()
        if self.plan.is_tracked:
            self._check_tracking()
        if self.plan.settings["runtime"] == "simulate":
            self._check_bytes()
        self._check_leftovers()

    # One attempt

    def _run(self, words: list[str], attempt: Attempt = CALM) -> Ending:
        output = self._folder / f"output-{self.tally.counts['attempts']}.txt"
        self.tally.counts["attempts"] += 1
        command = Command(words, self._folder, self.mark, output, self.tally.signals, self.plan.descriptors)
        return command.follow(attempt.strikes, lambda: self._damage(attempt) if attempt.is_damaged_running else None)

    def _command(self, results: str = "results") -> list[str]:
        plan = self.plan
        if plan.kind != "sweep":
            directory = [f"{results}/run"] if plan.kind == "run" else []
            return [sys.executable, "-m", "tests.storm.run", json.dumps(plan.settings), *directory]
        write_grid(self._folder, STUDY, base=plan.settings, axes=plan.axes, tracking={"every": 50})
        return [*COMMAND, "--grid", STUDY, "--results", results, *([] if plan.is_tracked else ["--no-tracking"])]

    def _judge(self, attempt: Attempt, ending: Ending) -> None:
        """See whether the attempt may have ended as it has."""
        self.tally.find(f"traceback: {text}" for text in self._tracebacks(attempt, ending))
        if ending.code == 0:
            self.tally.find([] if attempt.is_damaged_running else self._check_results(ending))
            self._damaged = None
        elif ending.code is None:
            self.tally.find([f"still running after {LIMIT_S:g} s; it had said: {_last_line(ending)}"])
        elif ending.code == 2 and self._damaged is not None and self._is_study_damaged:
            self.tally.counts["damaged studies refused"] += 1
            damages.undo(self._damaged, self._folder / "backup")
            self._damaged = None
        elif not self._is_excused(attempt, ending):
            struck = f"signals to {', '.join(sorted(ending.struck))}" if ending.struck else "no signal"
            self.tally.find([f"exit code {ending.code} after {struck}: {_last_line(ending)}"])

    @property
    def _is_study_damaged(self) -> bool:
        return self._damaged is not None and self._damaged.name == "study.json"

    def _tracebacks(self, attempt: Attempt, ending: Ending) -> list[str]:
        """Return the tracebacks in the output; a script whose files are lost while it runs may have one, no sweep."""
        may_have_one = attempt.is_damaged_running and self.plan.kind == "run"
        return [] if may_have_one else checks.tracebacks(ending.output)

    def _is_excused(self, attempt: Attempt, ending: Ending) -> bool:
        """Return whether an attempt had a reason to fail: a signal to itself, lost files, or the one before it."""
        is_struck = not ending.struck <= {*HELPERS, "MLflow tracker"}
        return is_struck or attempt.is_damaged_running or "another sweep is running" in ending.output

    def _damage(self, attempt: Attempt) -> None:
        if self._is_study_damaged:
            return  # a plan that is not mended yet: there is one backup, and the plan's must be in it
        for name in attempt.damages:
            damaged = damages.inflict(self._results, name, attempt.choice, self._folder / "backup")
            if damaged is not None:
                self.tally.damages[name] += 1
                self._damaged = damaged
                return

    def _see_them_gone(self) -> None:
        """Wait for the last process; one that stays is a finding, and is ended."""
        left = processes.wait_until_gone(self.mark, GRACE_S)
        self.tally.find(f"outlives its master: {processes.role(process)}" for process in left)
        processes.kill_all(self.mark)

    # What must hold

    def _check_results(self, ending: Ending) -> Iterator[str]:
        """Check what a command that ended well has left."""
        self.tally.counts["runs checked"] += self.plan.cells
        self.tally.counts["episodes checked"] += self.plan.cells * self._episodes
        if self.plan.kind == "long-lived master":
            yield from checks.master_is_steady(ending.output, self._episodes)
        elif self.plan.kind == "run":
            yield from checks.run_is_whole(self._results / "run", self._episodes)
        else:
            yield from checks.study_is_whole(self._results / STUDY, self.plan.cells, self._episodes)

    def _check_bytes(self) -> None:
        """Check that the storm has left no trace in virtual time: the same records as in calm."""
        self._run([*self._command("calm"), "--no-tracking"])
        stormy, calm = (checks.digests(folder) for folder in (self._results, self._folder / "calm"))
        self.tally.find(f"{cell}: other records than in calm" for cell in calm if stormy.get(cell) != calm[cell])

    def _check_tracking(self) -> None:
        """Check that MLflow can be brought up to date, and is then."""
        ending = self._run([*COMMAND, "--sync"])
        if ending.code != 0:
            return self.tally.find([f"--sync ends with exit code {ending.code}: {_last_line(ending)}"])
        return self.tally.find(checks.tracking_is_whole(self._folder / "mlflow.db", self._episodes))

    def _check_logs(self) -> None:
        """Check what cells have written; the log of one that failed for a lost file may have a traceback."""
        for log in self._results.glob("**/log.txt"):
            self.tally.find(f"traceback: {text}" for text in checks.tracebacks(log.read_text(errors="replace")))

    def _check_leftovers(self) -> None:
        """Check for what was left behind. A killed process can't clear up: the next run does, so there is one more."""
        if checks.leftovers(self._temporary, self._results):
            self._run([sys.executable, "-m", "tests.storm.run", '{"runtime": "processes", "episodes": 10}', "one-more"])
            self._see_them_gone()
        self.tally.find(f"left behind: {name}" for name in checks.leftovers(self._temporary, self._results))


def _last_line(ending: Ending) -> str:
    return (ending.output.strip().splitlines() or ["nothing"])[-1][:200]
