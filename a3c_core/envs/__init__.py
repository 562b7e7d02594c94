"""The environments, registered with Gymnasium by name; nothing of them is imported before one is made."""

import gymnasium

PLE_GAMES = ("Catcher", "FlappyBird", "Pixelcopter", "Pong", "PuckWorld", "Snake", "WaterWorld")  # those with a state

gymnasium.register(id="a3c_core/FlappyBird-v0", entry_point="a3c_core.envs.gym:FlappyBirdEnv")
for _game in PLE_GAMES:
    gymnasium.register(id=f"ple/{_game}-v0", entry_point="a3c_core.envs.ple:PleEnv", kwargs={"game": _game})
