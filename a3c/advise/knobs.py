"""How each system names its settings, from its own configuration files and documents."""

GENERATORS, TRAINERS, STALENESS, PARTIAL, SYNC_EVERY, SYNC, AHEAD, ASYNC, QUEUE = (
    "generators",
    "trainers",
    "staleness",
    "partial",
    "sync_every",
    "sync",
    "ahead",
    "async",
    "queue",
)
# {value} is the new value, {times} how many times as many devices.
KNOBS: dict[str, dict[str, str]] = {
    "verl": {
        GENERATORS: "rollout.nnodes, {times} times",
        TRAINERS: "trainer.nnodes, {times} times",
        STALENESS: "async_training.staleness_threshold={value}",
        PARTIAL: "async_training.partial_rollout=True",
        SYNC_EVERY: "async_training.trigger_parameter_sync_step={value}",
        SYNC: "async_training.checkpoint_engine.enable=True",
        AHEAD: "verl.experimental.one_step_off_policy",
        ASYNC: "verl.experimental.fully_async_policy, async_training.staleness_threshold={value}",
    },
    "areal": {
        GENERATORS: "allocation_mode, {times} times the generation servers",
        TRAINERS: "allocation_mode, {times} times the trainer's devices",
        STALENESS: "rollout.max_head_offpolicyness={value}",
        SYNC: "actor.weight_update_mode, xccl instead of disk",
        ASYNC: "rollout.max_head_offpolicyness={value}",
    },
    "slime": {
        GENERATORS: "--rollout-num-gpus, {times} times",
        TRAINERS: "--actor-num-nodes, {times} times",
        PARTIAL: "--partial-rollout",
        SYNC_EVERY: "--update-weights-interval {value}",
        AHEAD: "train_async.py instead of train.py",
        ASYNC: "train_async.py with examples/fully_async",
    },
    "miles": {
        GENERATORS: "--rollout-num-gpus, {times} times",
        TRAINERS: "--actor-num-nodes, {times} times",
        STALENESS: "--max-weight-staleness {value}",
        SYNC_EVERY: "--update-weights-interval {value}",
    },
    "sample-factory": {
        GENERATORS: "--num_workers, {times} times",
        TRAINERS: "--batch_size, {times} times, or fewer --num_epochs",
        STALENESS: "--max_policy_lag",
        QUEUE: "--num_batches_to_accumulate, smaller",
    },
    "rllib": {
        GENERATORS: "num_env_runners, {times} times",
        TRAINERS: "num_learners, {times} times",
        SYNC_EVERY: "broadcast_interval={value}",
        AHEAD: "APPO or IMPALA instead of PPO",
        QUEUE: "learner_queue_size",
    },
}


def has(system: str, knob: str) -> bool:
    """Return whether a system has a setting for a change; of systems that are not known, anything may be set."""
    return system not in KNOBS or knob in KNOBS[system]


def setting(system: str, knob: str, value: float | None = None, times: float | None = None) -> str:
    """Return how a system names a change, or nothing if it has no setting for it."""
    words = KNOBS.get(system, {}).get(knob, "")
    return words.format(value="" if value is None else f"{value:g}", times="" if times is None else f"{times:g}")
