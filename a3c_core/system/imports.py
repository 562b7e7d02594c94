"""Imports that happen late, or not at all: what a library would load for its own sake costs every run that uses it."""

import contextlib
import gc
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


@contextlib.contextmanager
def as_if_missing(*names: str) -> Iterator[None]:
    """Let imports of these modules fail within this block, as if they were not installed, but for those done before."""
    new = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(new))  # type: ignore[arg-type]  # None: the import system's word for it
    try:
        yield
    finally:
        for name in new:
            del sys.modules[name]


@contextlib.contextmanager
def for_good() -> Iterator[None]:
    """Let nobody look for garbage within this block, nor ever among what is there at its end.

    A large library makes objects by the hundred thousand as it is imported, and keeps them: to look through them took a
    fifth of TensorFlow's import, and again and again afterwards. What is not looked at is not written to either, so
    that processes which are forked go on sharing it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def load_within(name: str, context: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
    """Let a module be loaded within a context, whenever somebody imports it; nothing, if it has been loaded."""
    if name not in sys.modules:
        sys.meta_path.insert(0, _Watch(name, context))


class _Watch:
    """Stands first among those whom Python asks for modules, until it is asked for this one; the others find that."""

    def __init__(self, name: str, context: Callable[[], contextlib.AbstractContextManager[None]]):
        self._name, self._context = name, context

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self._wrap(spec.loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        load = loader.exec_module

        def load_within_context(module: ModuleType) -> None:
            with self._context():
                load(module)

        loader.exec_module = load_within_context
