"""Ray, imported late: an optional extra. Without an address it runs on this machine's loopback interface."""

import importlib.util
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from a3c_core.system.process_tuning import ONE_THREAD

_ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "RAY_ADDRESS"  # Ray's own variable for the cluster to connect to
LOOPBACK = "127.0.0.1"
_KNOCK_S = 5.0  # for an answer


class NoCluster(Exception):
    """Ray is not installed, or there is no cluster; the message is for the user."""


def address() -> str | None:
    """Return the address of the cluster to connect to, or None if it is to be one of our own."""
    given = os.environ.get(ADDRESS)
    return None if given in (None, "", "local") else given


def _on_loopback(address: str | None) -> bool:
    """Return whether a cluster is for this machine only: one of our own, or one that was made so."""
    return address is None or address.rpartition(":")[0] in (LOOPBACK, "localhost")


def ray_is_installed() -> bool:
    return importlib.util.find_spec("ray") is not None


def import_ray() -> Any:
    """Return the module `ray`, told to report nothing about us to its makers."""
    if not ray_is_installed():
        raise NoCluster("Ray is not installed: `make setup-ray` adds it")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if _on_loopback(address()):
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
        _connect(ray, local_cpus)
    try:
        yield ray
    finally:
        with _handlers_kept():
            ray.shutdown()


def _connect(ray: Any, local_cpus: int) -> None:
    where = address()
    ours = {"address": "local", "num_cpus": local_cpus, "include_dashboard": False, "_node_ip_address": LOOPBACK}
    if where is not None:
        _knock(where)
    environment = {"PYTHONPATH": str(_ROOT), **ONE_THREAD}
    try:
        ray.init(
            **(ours if where is None else {"address": where}),
            runtime_env={"env_vars": environment},
            logging_level="ERROR",
            log_to_driver=False,
        )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        reason = str(error).strip().splitlines()[0]
        if where is None:
            raise NoCluster(f"Ray can't be started here ({reason})") from error
        raise NoCluster(f"there is no Ray cluster at {where} ({reason}); `ray start --head` makes one") from error


def _knock(where: str) -> None:
    """Refuse an address at which nobody answers: Ray itself would try for minutes."""
    host, _, port = where.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # such as "auto"
    try:
        socket.create_connection((host, int(port)), _KNOCK_S).close()
    except OSError as error:
        raise NoCluster(f"there is no Ray cluster at {where} ({error}); `ray start --head` makes one") from error


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
