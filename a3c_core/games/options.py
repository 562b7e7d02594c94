"""What the environments let a user choose, and how they refuse anything else."""

from collections.abc import Collection, Sequence
from typing import Any

from a3c_core.errors import near_miss

MAX_EPISODE_STEPS = 20_000
FLAPPY_ACTIONS = ("nothing", "flap")


def require_choice(option: str, value: Any, allowed: Collection[Any]) -> None:
    """Refuse a `value` that is not among those `allowed`, naming them and the likeliest one meant."""
    if value in tuple(allowed):
        return
    meant = near_miss(str(value), (name for name in allowed if isinstance(name, str)))
    hint = f" Did you mean {meant!r}?" if meant else ""
    raise ValueError(f"unknown {option} {value!r}: it must be one of {', '.join(map(repr, allowed))}.{hint}")


def require_positive(option: str, value: Any) -> int:
    """Return `value` if it is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{option} must be a whole number of at least 1, not {value!r}")
    return value


def read_action(action: Any, names: Sequence[str]) -> int:
    """Return `action`, an integer of any type that is the place of one of the `names`, as an int."""
    try:
        index = action.__index__()  # Python's and NumPy's integers and 0-d integer arrays, but no float and no text
    except (AttributeError, TypeError):
        index = -1
    if not 0 <= index < len(names):
        import gymnasium  # whoever gives actions here has done so already

        meanings = ", ".join(f"{place} ({name})" for place, name in enumerate(names))
        raise gymnasium.error.InvalidAction(f"unknown action {action!r}: it must be one of {meanings}")
    return index
