"""The arithmetic of the report's published code, written again from reading it, for tests alone.

Source: github.com/FrankCCCCC/rl_collection, a3c-flappy_sota.py with models/A2C.py (`Agent.loss`, `select_action`,
`train_on_env`) and envs/flappyBird.py (`get_state`, `reset`).
"""

import numpy as np

PUBLISHED = {
    "environment": {
        "observation": "pixels",
        "seeding": "recreated",
        "actions": "shared",
        "max_episode_steps": 1_000_000,
    },
    "learner": {"discounts": "stretched"},
    "exchange": {"channel": "mailbox", "pull": "at_once", "queue": "unbounded"},
}
GAMMA = 0.99


def targets(rewards):
    """Return float64 [T]: discounted sums with stretched exponents, standardised."""
    steps = len(rewards)
    discounts = GAMMA ** np.linspace(0, steps, num=steps)  # logspace(0, n, num=n) to the base gamma
    sums = np.array([np.sum(rewards[t:] * discounts[: steps - t]) for t in range(steps)])
    return (sums - sums.mean()) / (sums.std() + 1e-9)


def loss(tf, policies, values, actions, rewards):
    """Return the summed loss of an episode; `policies` [T] of [2] and `values` [T] are lists of tensors.

    What looks like a gradient through the advantage is none: an array less a *list* of tensors is an array, which
    NumPy makes of the tensors' numbers, and a tape knows nothing of it.
    """
    goals = targets(rewards)
    log_chosen = tf.math.log([policy[action] for policy, action in zip(policies, actions, strict=True)])
    advantages = goals - values
    policy_losses = -log_chosen * advantages
    value_loss = tf.keras.losses.Huber()(
        tf.convert_to_tensor(values, tf.float32), tf.convert_to_tensor(goals, tf.float32)
    )
    return tf.reduce_sum(policy_losses + 1.0 * value_loss)  # the mean value loss, once for each step


def network(tf):
    """Return a network like the published one: softmax inside."""
    inputs = tf.keras.layers.Input((8,))
    hidden = tf.keras.layers.Dense(128, activation="relu")(inputs)
    outputs = [tf.keras.layers.Dense(2, activation="softmax")(hidden), tf.keras.layers.Dense(1)(hidden)]
    return tf.keras.Model(inputs, outputs)


def gradient(tf, weights, observations, actions, rewards):
    """Return (gradient [P], loss): a call a step, and a tape over the episode."""
    model = network(tf)
    model.set_weights(weights)
    with tf.GradientTape() as tape:
        policies, values = [], []
        for observation in observations:
            policy, value = model(tf.convert_to_tensor([observation], tf.float32))
            policies.append(tf.squeeze(policy))
            values.append(tf.squeeze(value))
        summed = loss(tf, policies, values, actions, rewards)
    parts = tape.gradient(summed, model.trainable_variables)
    return np.concatenate([part.numpy().ravel() for part in parts]), float(summed)
