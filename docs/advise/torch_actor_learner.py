"""A small asynchronous actor-learner in PyTorch with a deliberately slow learner: somebody else's system, for `advise`.

    python torch_actor_learner.py --workers 2 --seconds 30 --log times.csv    # needs torch; nothing of this project
    a3c advise --log times.csv --workers 1,2,4,8,12

Actors play a made-up game with the newest parameters, compute a gradient and hand it over; the learner applies one at a
time. Playing and applying are mostly sleep (as with a simulator, a remote model or a slow disk): so few cores do for
twelve actors, and a busy machine spoils little.
"""

import argparse
import random
import time
from pathlib import Path

import torch
import torch.multiprocessing as mp
from timing import timed  # the copied file: a3c/advise/timing.py

PLAY_S, SPREAD, LEARN_S = 0.25, 0.3, 0.04  # a mean episode, its lognormal deviation, an update
HOLDS = 2  # gradients that may wait: beyond, actors do


def new_model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))


def act(number: int, shared: torch.nn.Module, gradients: mp.Queue, ready: mp.Barrier, log: str) -> None:
    """Play, differentiate, hand over, again; until terminated."""
    torch.set_num_threads(1)
    model, chance = new_model(), random.Random(number)
    ready.wait()
    while True:
        with timed(log, "work", number):
            model.load_state_dict(shared.state_dict())
            time.sleep(PLAY_S * chance.lognormvariate(-(SPREAD**2) / 2, SPREAD))  # an episode of some length
            observations = torch.randn(16, 8)
            loss = torch.nn.functional.cross_entropy(model(observations), torch.randint(0, 2, (16,)))
            gradient = [part.tolist() for part in torch.autograd.grad(loss, list(model.parameters()))]
        gradients.put((number, gradient))  # waits while the queue is full


def learn(shared: torch.nn.Module, optimizer: torch.optim.Adam, gradients: mp.Queue, seconds: float, log: str) -> int:
    """Apply gradients as they come; return how many came in the second half of the time."""
    began, counted = time.time(), 0
    while time.time() < began + seconds:
        number, gradient = gradients.get(timeout=60)
        with timed(log, "update", number):
            for parameter, part in zip(shared.parameters(), gradient, strict=True):
                parameter.grad = torch.tensor(part)
            optimizer.step()
            time.sleep(LEARN_S)  # the deliberately slow part
        counted += time.time() > began + seconds / 2
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--log", default="times.csv")
    options = parser.parse_args()
    Path(options.log).unlink(missing_ok=True)
    torch.set_num_threads(1)  # before the first operation: threads do not survive a fork
    context = mp.get_context("fork")
    shared, gradients = new_model().share_memory(), context.Queue(maxsize=HOLDS)
    ready = context.Barrier(options.workers + 1)  # so that starting up is not measured
    arguments = (shared, gradients, ready, options.log)
    actors = [context.Process(target=act, args=(number, *arguments), daemon=True) for number in range(options.workers)]
    for actor in actors:
        actor.start()
    optimizer = torch.optim.Adam(shared.parameters(), lr=1e-3)
    ready.wait()
    counted = learn(shared, optimizer, gradients, options.seconds, options.log)
    for actor in actors:
        actor.terminate()
    print(f"{options.workers} workers: {counted / (options.seconds / 2):.2f} gradients a second")


if __name__ == "__main__":
    main()
