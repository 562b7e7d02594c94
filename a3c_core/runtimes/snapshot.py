"""A simulation as plain numbers and arrays, and back: a resumed run goes on to the very same bytes."""

from collections import Counter, deque
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a3c_core.runtimes.ledger import Delivery, Ledger, Moment, Totals
from a3c_core.runtimes.real import RealRuntime
from a3c_core.runtimes.simulate import Mail, Seat, Simulation
from a3c_core.worker import Episode

Arrays = dict[str, NDArray[Any]]


def take(simulation: Simulation) -> tuple[dict[str, Any], Arrays]:
    """Return (numbers for JSON, arrays). The waiting gradients are apart: `simulation.queue.write_gradients`."""
    s = simulation
    arrays: Arrays = {}
    seats = [_take_seat(seat, arrays) for seat in s.seats.values()]
    if s.serving is not None:
        arrays["serving"] = s.serving[1]
    numbers = {
        "clock_s": s.clock_s,
        "overloaded": s.overloaded,
        "playing": s.playing,
        "crowding": s.crowding,
        "next_id": s.next_id,
        "events": s.events,
        "blocked": list(s.blocked),
        "ledger": take_ledger(s.ledger),
        "seats": seats,
        "queue": s.queue.items(),
        "serving": s.serving[0] if s.serving else None,
    }
    return numbers, arrays


def restore(simulation: Simulation, numbers: dict[str, Any], arrays: Arrays) -> None:
    """Bring a fresh simulation to the state that `take` saw, but for the queue's gradients."""
    s = simulation
    for name in ("clock_s", "overloaded", "playing", "crowding", "next_id"):
        setattr(s, name, numbers[name])
    s.events = [(time_s, who) for time_s, who in numbers["events"]]
    s.blocked = deque(numbers["blocked"])
    restore_ledger(s.ledger, numbers["ledger"])
    s.seats = {saved["id"]: _restore_seat(s, saved, arrays) for saved in numbers["seats"]}
    if numbers["serving"] is not None:
        s.serving = delivery_from(numbers["serving"]), arrays["serving"]


def take_real(runtime: RealRuntime) -> dict[str, Any]:
    """Return what a real run needs in order to go on; what is under way will be played again."""
    return {"elapsed_s": runtime.clock_s, "recorded": runtime.recorded, "ledger": take_ledger(runtime.ledger)}


def restore_real(runtime: RealRuntime, numbers: dict[str, Any]) -> None:
    """Bring a real run that has not started yet to the state that `take_real` saw."""
    runtime.elapsed_s, runtime.recorded = numbers["elapsed_s"], numbers["recorded"]
    restore_ledger(runtime.ledger, numbers["ledger"])
    totals = runtime.ledger.totals
    totals.sent = totals.outcomes  # what had arrived, but waited for the master, is sent again


def take_ledger(ledger: Ledger) -> dict[str, Any]:
    """Return the ledger as numbers for JSON."""
    totals = {**asdict(ledger.totals), "staleness": sorted(ledger.totals.staleness.items())}
    return {
        "totals": totals,
        "episodes": ledger.episodes,
        "window": list(ledger.window),
        "changed_at": ledger.changed_at,
    }


def restore_ledger(ledger: Ledger, numbers: dict[str, Any]) -> None:
    """Bring a fresh ledger to the state that `take_ledger` saw."""
    ledger.totals = Totals(**{**numbers["totals"], "staleness": Counter(dict(numbers["totals"]["staleness"]))})
    ledger.episodes, ledger.changed_at = numbers["episodes"], numbers["changed_at"]
    ledger.window.extend(Moment(*moment) for moment in numbers["window"])


def delivery_from(saved: list[Any]) -> Delivery:
    """Return the delivery that JSON made a list of."""
    delivery = Delivery(*saved)
    return delivery._replace(episodes=tuple(Episode(*episode) for episode in delivery.episodes))


def _take_seat(seat: Seat, arrays: Arrays) -> dict[str, Any]:
    key = f"worker{seat.worker.id}"
    worker, games = seat.worker.get_state()
    arrays |= {f"{key}_game{place}": game for place, game in games.items()}
    arrays[f"{key}_held"] = seat.held.parameters
    if seat.slot is not None:
        arrays[f"{key}_slot"] = seat.slot.parameters
    if seat.gradient is not None:
        arrays[f"{key}_gradient"] = seat.gradient
    return {
        "id": seat.worker.id,
        "worker": worker,
        "held": seat.held.version,
        "slot": seat.slot.version if seat.slot else None,
        "delivery": seat.delivery,
        "core_s": seat.core_s,
        "waits": seat.waits,
        "retiring": seat.retiring,
    }


def _restore_seat(simulation: Simulation, saved: dict[str, Any], arrays: Arrays) -> Seat:
    key = f"worker{saved['id']}"
    worker = simulation.new_worker(saved["id"])
    begun = range(len(saved["worker"]["agents"]))
    worker.set_state(saved["worker"], {i: arrays[f"{key}_game{i}"] for i in begun if f"{key}_game{i}" in arrays})
    return Seat(
        worker=worker,
        held=Mail(saved["held"], arrays[f"{key}_held"]),
        slot=Mail(saved["slot"], arrays[f"{key}_slot"]) if saved["slot"] is not None else None,
        delivery=delivery_from(saved["delivery"]) if saved["delivery"] is not None else None,
        gradient=np.array(arrays[f"{key}_gradient"]) if f"{key}_gradient" in arrays else None,
        core_s=saved["core_s"],
        waits=saved["waits"],
        retiring=saved["retiring"],
    )
