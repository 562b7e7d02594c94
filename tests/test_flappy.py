"""The compiled game against recordings of the real one, a slow twin, and PLE itself where it is installed."""

from pathlib import Path

import numpy as np
import pytest

from a3c_core.games import flappy
from a3c_core.games.flappy import FlappyBird
from a3c_core.streams import stream_words
from tests.flappy_twin import EpisodeStream, FlappyTwin, PleStream

RECORDINGS = sorted((Path(__file__).parent / "data").glob("seed*.npz"))
CUT_BY_RECORDER = 2


def test_recordings_cover_what_they_should():
    names = [path.stem.split("-") for path in RECORDINGS]
    for place, expected in enumerate(
        ({"seed7", "seed24"}, {"always", "fall", "good", "noisy", "random", "spam"}, {"recreate", "reset"})
    ):
        assert {name[place] for name in names} == expected


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_recording_replays_exactly(path):
    recording = dict(np.load(path))
    game = FlappyBird(int(recording["seed"]))
    game.reset_game()
    resets = 2 if recording["recreate"] else 1
    states, rewards, deaths = [], [], []
    for action, done in zip(recording["action"], recording["done"], strict=True):
        states.append(game.game_state())
        rewards.append(game.act(bool(action)))
        deaths.append(game.game_over)
        if game.game_over or done == CUT_BY_RECORDER:
            for _ in range(resets):
                game.reset_game()
    np.testing.assert_array_equal(np.array(states), recording["state"], strict=True)
    np.testing.assert_array_equal(rewards, recording["reward"])
    np.testing.assert_array_equal(deaths, recording["done"] == 1)


def skilled(state, random) -> bool:
    """Return whether to flap, as a player does who aims low in the next gap, and errs now and then."""
    y, speed, gap_end = state[0], state[1], state[4]
    return bool(y + 24 + speed > gap_end - 14) ^ bool(random.random() < 0.02)


def careless(state, random) -> bool:
    return bool(random.random() < 0.08)


def play_both(game, twin, policy, steps, restart):
    """Play the game and its twin side by side and return how many pipes they passed and how often they died."""
    random = np.random.default_rng(0)
    pipes = deaths = 0
    for _ in range(steps):
        state = game.game_state()
        assert state.tolist() == twin.state()
        flap = policy(state, random)
        reward, died = twin.act(flap)
        assert (game.act(flap), game.game_over) == (reward, died)
        pipes += reward in (1, -4)
        if died:
            deaths += 1
            restart(deaths)
    return pipes, deaths


@pytest.mark.parametrize("policy", [skilled, careless])
@pytest.mark.parametrize("seed", [0, 1, 123456, 2**32 - 1])
def test_game_agrees_with_twin_on_ple_stream(seed, policy):
    game, twin = FlappyBird(seed), FlappyTwin(PleStream(seed))

    def restart(_):
        game.reset_game()
        twin.reset()

    pipes, deaths = play_both(game, twin, policy, 4000, restart)
    assert deaths > 3
    assert pipes > 20 or policy is careless


@pytest.mark.parametrize("policy", [skilled, careless])
@pytest.mark.parametrize(("seed", "worker"), [(0, 0), (7, 39)])
def test_game_agrees_with_twin_on_episode_streams(seed, worker, policy):
    game = FlappyBird.with_streams(seed, worker, 0)
    twin = FlappyTwin(EpisodeStream(stream_words(seed, worker, 0)[0]))

    def restart(episode):
        game.reset_episode(seed, worker, episode)
        twin.stream = EpisodeStream(stream_words(seed, worker, episode)[0])
        twin.reset()

    _, deaths = play_both(game, twin, policy, 4000, restart)
    assert deaths > 3


def first_gaps(game) -> list[float]:
    return game.record["pipe_gap"].tolist()


def test_same_seed_same_game_other_seed_other_game():
    assert first_gaps(FlappyBird(5)) == first_gaps(FlappyBird(5))
    assert first_gaps(FlappyBird(5)) != first_gaps(FlappyBird(6))


def test_episode_streams_differ_by_seed_worker_and_episode():
    keys = [(seed, worker, episode) for seed in range(3) for worker in range(3) for episode in range(3)]
    gaps = {tuple(first_gaps(FlappyBird.with_streams(*key))) for key in keys}
    assert len(gaps) == len(keys)
    assert first_gaps(FlappyBird.with_streams(1, 2, 0)) == first_gaps(FlappyBird.with_streams(1, 2, 0))


def fall(game) -> None:
    while not game.game_over:
        game.act(False)


def test_bird_keeps_its_speed_in_ple_stream_but_starts_at_rest_in_its_own():
    like_ple, own = FlappyBird(1), FlappyBird.with_streams(1)
    fall(like_ple)
    fall(own)
    like_ple.reset_game()
    own.reset_game()
    assert like_ple.game_state()[1] == flappy.MAX_FALL_SPEED
    assert own.game_state()[1] == 0


def test_acting_after_death_is_an_error():
    game = FlappyBird(1)
    fall(game)
    with pytest.raises(RuntimeError, match=r"dead.*reset_game"):
        game.act(True)
    game.reset_game()
    assert game.act(True) == 0


def test_observation_is_the_scaled_state_relative_to_the_bird():
    game = FlappyBird(3)
    for step in range(40):
        game.act(step % 14 == 0)
    y, speed, distance, start, end, next_distance, next_start, next_end = game.game_state()
    expected = [y / 512, speed / 10]
    expected += [distance / 288, (start - y) / 512, (end - y) / 512]
    expected += [next_distance / 288, (next_start - y) / 512, (next_end - y) / 512]
    observation = np.empty(8)
    flappy.write_observation(game.record, observation)
    np.testing.assert_array_equal(observation, expected)


@pytest.mark.parametrize("policy", [skilled, careless])
@pytest.mark.parametrize("seed", [24, 31, 4711])
def test_game_agrees_with_the_real_ple(seed, policy):
    pytest.importorskip("ple", reason="the real PLE is optional; `make setup-ple` brings it")
    from a3c_core.games.ple import LegacyRandom, flatten, import_ple

    package = import_ple()
    ple = package.PLE(package.games.FlappyBird(), rng=LegacyRandom(seed))
    game, random = FlappyBird(seed), np.random.default_rng(seed)
    for _ in range(3000):
        state = game.game_state()
        np.testing.assert_array_equal(state, flatten(ple.getGameState()))
        flap = policy(state, random)
        assert game.act(flap) == ple.act(ple.game.actions["up"] if flap else None)
        assert game.game_over == ple.game_over()
        if game.game_over:
            game.reset_game()
            ple.reset_game()
