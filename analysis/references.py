"""What "module:attribute" names, for what the package lists of its own and for what a user gives from outside."""

import importlib
from typing import Any

from analysis.data.study import StudyError


def resolve(reference: str) -> Any:
    """Return the object that "mypackage.module:NAME" names; raise StudyError, with the reason, if there is none."""
    module, _, name = reference.partition(":")
    if not module or not name:
        raise StudyError(f"{reference} is no reference: give module:NAME, such as mypackage.module:FIGURE")
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise StudyError(f"{reference} can't be imported: {error}") from error
    except AttributeError as error:
        raise StudyError(f"{reference} is not there: the module {module} has no {name}") from error
