"""Ray, imported late: an optional extra. Without an address it runs on this machine's loopback interface."""

import importlib.util
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ADDRESS = "RAY_ADDRESS"  # Ray's own variable for the cluster to connect to
LOOPBACK = "127.0.0.1"


class NoCluster(Exception):
    """Ray is not installed, or there is no cluster; the message is for the user."""


def _on_loopback(address: str | None) -> bool:
    """Return whether a cluster is for this machine only: one of our own, or one that was made so."""
    return address in (None, "", "local") or str(address).rpartition(":")[0] in (LOOPBACK, "localhost")


def ray_is_installed() -> bool:
    return importlib.util.find_spec("ray") is not None


def import_ray() -> Any:
    """Return the module `ray`, told to report nothing about us to its makers."""
    if not ray_is_installed():
        raise NoCluster("Ray is not installed: `make setup-ray` adds it")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # which GPU is seen is our own setting
    if _on_loopback(os.environ.get(ADDRESS)):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # else Ray replaces 127.0.0.1 by the machine's address
    import ray

    return ray


@contextmanager
def connected(local_cpus: int) -> Iterator[Any]:
    """Be connected to the cluster at RAY_ADDRESS, or to one of our own with `local_cpus`; yield the module `ray`."""
    ray = import_ray()
    if ray.is_initialized():  # the caller's connection stays his
        yield ray
        return
    with _handlers_kept():
        _connect(ray, os.environ.get(ADDRESS), local_cpus)
    try:
        yield ray
    finally:
        with _handlers_kept():
            ray.shutdown()


def _connect(ray: Any, address: str | None, local_cpus: int) -> None:
    common = {
        "runtime_env": {"env_vars": {"PYTHONPATH": str(_ROOT), **dict.fromkeys(_ONE_THREAD, "1")}},
        "logging_level": "ERROR",
        "log_to_driver": False,
    }
    loopback = {"_node_ip_address": LOOPBACK} if _on_loopback(address) else {}
    if address in (None, "", "local"):
        ray.init(address="local", num_cpus=local_cpus, include_dashboard=False, **loopback, **common)
        return
    try:
        ray.init(address=address, **loopback, **common)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise NoCluster(f"there is no Ray cluster at {address} ({reason}); `ray start --head` makes one") from error


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep our signal handlers: Ray puts its own in their place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # one that was not set from Python
                signal.signal(number, handler)
