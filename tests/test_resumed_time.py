"""A run in virtual time that is interrupted anywhere, whatever its settings, ends in the bytes of one that was not."""

import numpy as np
import pytest
import yaml

from a3c_core.config import RunConfig
from a3c_core.topologies import parcel_queue
from tests.interrupted import assert_same_bytes_when_interrupted
from tests.published_code import PUBLISHED
from tests.random_settings import random_config, random_profile, random_value_config

REPORT = {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"}
AUTO = {"auto_min": 2, "auto_max": 30, "spacing": 10, "window": 5}
CHOSEN = {
    "an overloaded master": {"workers": "70", "episodes": 900, "exchange": REPORT},
    "gradients that are refused": {"workers": "6", "learner": {"optimizer": "sgd", "learning_rate": 1e6}},
    "workers that come and go": {"workers": "auto", "episodes": 900, "schedule": AUTO, "exchange": REPORT},
    "overloaded at its end": {"workers": "auto", "schedule": AUTO, "exchange": {**REPORT, "overload_limit": 15}},
    "the published code": {"workers": "10", "episodes": 900, **PUBLISHED},
}


@pytest.mark.parametrize("seed", [*range(100, 112), *range(400, 412)])
def test_random_settings(seed, tmp_path):
    profile = tmp_path / "profile.yaml"
    profile.write_text(yaml.safe_dump(random_profile(np.random.default_rng([seed, 1]))))
    random = random_config if seed < 400 else random_value_config
    config = random(np.random.default_rng([seed, 0]), str(profile))
    events = np.random.default_rng(seed).integers(0, 300, size=3).tolist()
    assert_same_bytes_when_interrupted(config, tmp_path, events)


@pytest.mark.parametrize("name", CHOSEN)
def test_chosen_settings(name, tmp_path):
    config = RunConfig.model_validate({"workers": "5", "episodes": 300, **CHOSEN[name]})
    assert_same_bytes_when_interrupted(config, tmp_path, (100, 300))


@pytest.mark.parametrize("limit", [None, 150])
def test_a_queue_of_which_most_is_in_a_file(limit, tmp_path, monkeypatch):
    """Also where a limit ends the run there."""
    monkeypatch.setattr(parcel_queue, "BLOCK", 16)
    changed = {"profile": "report-tf2.21", "exchange": {**REPORT, "overload_limit": limit}}
    config = RunConfig.model_validate({"workers": "40", "episodes": 600, **changed})
    assert_same_bytes_when_interrupted(config, tmp_path, (150, 300, 400))
