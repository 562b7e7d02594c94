"""The decorators of all compiled code, with an on-disk cache that can't go stale."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numba
import numba.extending

from a3c_core.system.imports import as_if_missing, load_within

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("a3c", "a3c_core")  # that have compiled code
_Function = TypeVar("_Function", bound=Callable[..., Any])


def _source_digest() -> str:
    """Digest of all files with compiled code: Numba alone does not notice a change in a *called* function's file."""
    sources = (path.read_bytes() for package in _PACKAGES for path in sorted((_ROOT / package).rglob("*.py")))
    return hashlib.sha256(b"".join(source for source in sources if b"a3c_core.system.jit" in source)).hexdigest()[:16]


# Numba looks for a library of linear algebra as it loads its first function. No function here wants one, and SciPy's
# takes a quarter of a second and 30 MB.
load_within("numba.np.arraymath", partial(as_if_missing, "scipy.linalg"))

# Sums that may be re-ordered are re-ordered by the width of the processor's vectors, and what a seed gives would change
# with the machine (it did: AVX-512 on AMD's Zen 4). So all code is compiled for one processor, of 2013 (x86-64-v3), on
# every machine that has its instructions; elsewhere, on ARM for example, results are repeatable on the same kind only.
_COMMON_CPU, _ITS_INSTRUCTIONS = "haswell", ("avx2", "fma", "bmi2")
if all(llvmlite.binding.get_host_cpu_features().get(name) for name in _ITS_INSTRUCTIONS):
    numba.config.CPU_NAME, numba.config.CPU_FEATURES = _COMMON_CPU, ""  # type: ignore[attr-defined]
numba.config.CACHE_DIR = str(_ROOT / "a3c_core" / "__pycache__" / f"numba-{_source_digest()}")  # type: ignore[attr-defined]


def exact(function: Callable[..., Any] | None = None, *, allocates: bool = False) -> Any:
    """Compile with strict IEEE arithmetic: the game must match PLE to the last bit."""
    return _compiled(function, allocates)


def inner(function: Callable[..., Any]) -> Any:
    """Compile like `exact`, but for compiled code alone: no wrapper for Python, which takes long for many arrays."""
    return _compiled(function, allocates=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def fast(function: Callable[..., Any] | None = None, *, allocates: bool = False) -> Any:
    """Compile the network's arithmetic, where sums may be re-ordered and fused so that they vectorise."""
    return _compiled(function, allocates, fastmath={"reassoc", "contract", "nsz", "arcp"})


def _compiled(function: Callable[..., Any] | None, allocates: bool, **options: Any) -> Any:
    """Compile, or return what does, where it stands in a decorator with arguments.

    Whoever calls compiled code holds its arrays meanwhile, so that it need not count who else does, which took nearly
    half of a short episode's time. What allocates has to count, and so has whoever is given what was allocated.
    """
    options.update(cache=True, nogil=True, error_model="numpy", _nrt=allocates)  # Numba's runtime: it counts and frees
    compile_it = numba.njit(**options)
    return compile_it if function is None else compile_it(function)


def direct(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Return compiled `function` for arguments of the very types and layouts of these, which it doesn't look at again.

    To look takes Python a quarter of a microsecond, and twice that where there are records among them. Only the size of
    an array's items is still checked: whoever calls it vouches for the rest.
    """
    compiled: Callable[..., Any] = function.compile(tuple(numba.typeof(argument) for argument in arguments))
    return compiled


def compilable(function: _Function) -> _Function:
    """Leave it a Python function that compiled code can call as well: one formula for both."""
    registered: _Function = numba.extending.register_jitable(error_model="numpy")(function)
    return registered


@exact
def copy(source, target):
    """Copy an array into another; a slice's assignment does the same, but takes a second to compile."""
    for i in range(source.size):
        target[i] = source[i]
