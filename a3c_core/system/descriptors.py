"""File descriptors: how many this process may have open, and room for those of a run's workers."""

import os

try:
    import resource
except ImportError:  # not on Windows, where there is no such limit
    resource = None  # type: ignore[assignment]

_SPARE = 32  # for files, libraries and what is open for a moment only
_USUAL = 4_096  # the limit is raised to this at least, where that is allowed: a fork server inherits it for later runs


class TooFewDescriptors(Exception):
    """This process may not open as many files as the run needs; the message is for the user."""


def make_room(workers: int, of_each: int) -> None:
    """Raise the soft limit if it leaves no room for so many workers; raise TooFewDescriptors if that is not enough."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _open() + workers * of_each + _SPARE
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    wanted = max(needed, _USUAL)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if allowed < needed:
        raise TooFewDescriptors(
            f"{workers} workers need {needed:,} open files, and this process may have {hard:,}: raise the hard limit"
            " (ulimit -Hn), or use fewer workers"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _open() -> int:
    """Return how many descriptors are open, or a usual number where that can't be seen."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return _SPARE
