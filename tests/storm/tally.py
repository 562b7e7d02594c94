"""What was done and what was found, in one round or in all, and the table of it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts and findings."""

    signals: Counter[tuple[str, str]] = field(default_factory=Counter)  # by (target, signal)
    damages: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)  # attempts, records, ...
    findings: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Take over another's counts and findings."""
        self.signals.update(other.signals)
        self.damages.update(other.damages)
        self.counts.update(other.counts)
        self.findings += other.findings

    def find(self, sentences: Iterable[str]) -> None:
        """Note what should not be; what was found before, in the same words, is noted once."""
        self.findings += [sentence for sentence in dict.fromkeys(sentences) if sentence not in self.findings]


def table(tally: Tally) -> list[str]:
    """Return the lines of the final table."""
    names = sorted({name for _, name in tally.signals})
    targets = sorted({target for target, _ in tally.signals})
    lines = [_row("signals to", *names, "all")]
    for target in targets:
        by_name = [tally.signals[target, name] for name in names]
        lines.append(_row(target, *by_name, sum(by_name)))
    by_name = [sum(tally.signals[target, name] for target in targets) for name in names]
    lines += [_row("all", *by_name, sum(by_name)), "", _row("damages", "")]
    lines += [_row(name, count) for name, count in sorted(tally.damages.items())]
    lines += [_row("all", sum(tally.damages.values())), "", _row("counted", "")]
    return lines + [_row(name, count) for name, count in sorted(tally.counts.items())]


def _row(name: str, *values: object) -> str:
    return f"  {name:<28}" + "".join(f"{value:>10,}" if isinstance(value, int) else f"{value:>10}" for value in values)
