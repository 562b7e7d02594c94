"""Every setting of a run: frozen, documented once, and rejected with a reason where it makes no sense."""

import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator, model_validator

from a3c_core import algorithms, models, topologies
from a3c_core.algorithms.a3c import A3CSettings
from a3c_core.algorithms.base import LearnerSettings
from a3c_core.engines import ENGINES
from a3c_core.games.base import EnvironmentConfig
from a3c_core.models.dense import DenseSettings
from a3c_core.registry import Registry
from a3c_core.schedules import MOST_WORKERS, ScheduleConfig, Span, parse_workers
from a3c_core.section import MOST_EPISODES, MOST_SECONDS, MOST_SLOWDOWN, Cost, Section
from a3c_core.topologies.exchange import ExchangeConfig

LearnerConfig = A3CSettings  # what `learner:` is unless another algorithm is named

MOST_REAL_WORKERS = 4_096  # processes, threads or actors
MOST_ENV_STEPS = 10**12
Gpu = Annotated[int, Field(ge=0, le=1_023)]  # its number


class Chosen(NamedTuple):
    """A section whose class another setting chooses."""

    chooser: str  # that setting
    parts: Registry  # what it chooses from
    section_of: Callable[[str], type[Section]]


SECTIONS = {
    "learner": Chosen("algorithm", algorithms.ALGORITHMS, algorithms.settings_of),
    "network": Chosen("model", models.MODELS, models.settings_of),
    "exchange": Chosen("topology", topologies.TOPOLOGIES, topologies.settings_of),
}


class PaceConfig(Section):
    """Real workers and a real master at the costs of a profile: who is done sooner sleeps until its time has passed."""

    profile: str | None = Field(
        None, description="real runtimes: cost profile that work is paced to; null: it goes as fast as it can"
    )
    speed: float = Field(1.0, gt=0, le=MOST_SLOWDOWN, description="seconds of the profile that pass in a real one")

    @model_validator(mode="after")
    def _has_a_profile(self) -> "PaceConfig":
        if self.profile is None and self.speed != 1.0:
            raise ValueError("speed needs a profile to be paced to, such as profile: report")
        return self


class RunConfig(Section):
    """All settings of one run, which is one cell of a sweep. They are frozen and validated when they are made.

    The sections `learner`, `network` and `exchange` have the class that the chosen algorithm, model and topology
    declare. `model_dump(mode="json")` gives plain data, from which `RunConfig.model_validate` makes an equal RunConfig.

    Raises:
        pydantic.ValidationError: a setting is unknown, out of range, or does not go together with another one.

    Example:
        >>> RunConfig(workers="10->20", algorithm="ppo", learner={"epochs": 4}, seed=7)  # doctest: +SKIP
    """

    workers: str = Field("10", description="10, 10->20 or auto")
    episodes: int = Field(100_000, ge=1, le=MOST_EPISODES, description="episodes to play, over all workers")
    env_steps: int | None = Field(
        None,
        ge=1,
        le=MOST_ENV_STEPS,
        description="virtual time: env steps after which no further episode begins; null: the episodes alone decide",
    )
    seed: int = Field(0, ge=0, le=2**63 - 1)
    runtime: Literal["simulate", "processes", "threads", "ray"] = Field(
        "simulate", description="virtual time, or real workers: processes or threads here, or Ray's on any machine"
    )
    engine: str = Field("compiled", description="compiled (what it supports, fast), tensorflow (everything) or report")
    algorithm: str = Field("a3c", description="how experience becomes a change; or your own, package.module:Class")
    model: str = Field("dense", description="dense, conv for pictures, lstm, or your own, package.module:build")
    agents_per_worker: int = Field(
        1, ge=1, le=1_024, description="games that a worker plays at once, for one gradient of all"
    )
    topology: str = Field(
        "master",
        description="who hands what to whom: master, synchronous, sharded, ga3c, gorila, hogwild, or module:Class",
    )
    profile: str = Field("report", description="cost profile of virtual time: a shipped one's name or a YAML file")
    slowdown: float | None = Field(None, gt=0, le=MOST_SLOWDOWN, description="replaces the profile's")
    update_s: Cost | None = Field(None, description="replaces the profile's: a faster or slower master")
    stall_every: int | None = Field(
        None, ge=0, le=MOST_EPISODES, description="replaces the profile's; 0: the master never stops for bookkeeping"
    )
    jitter: Literal["none", "lognormal", "exponential"] | None = Field(None, description="replaces the profile's")
    jitter_deviation: float | None = Field(
        None, gt=0, le=1e3, description="replaces the profile's: 0.02 varies every cost by 2 % (lognormal jitter)"
    )
    gpus: tuple[Gpu, ...] = Field((), description="GPUs that workers use in turn; empty: none")
    restarts: int = Field(100, ge=0, le=1_000_000, description="lost workers replaced before the run is given up")
    worker_limit_s: float = Field(
        600.0, gt=0, le=MOST_SECONDS, description="a worker that delivers nothing for so long is replaced"
    )
    start_limit_s: float = Field(
        600.0,
        gt=0,
        le=MOST_SECONDS,
        description="a worker that is not up so long after it was started, or another came up, is replaced",
    )
    checkpoint_s: float = Field(60.0, gt=0, le=MOST_SECONDS, description="real seconds between checkpoints")
    snapshots: int = Field(0, ge=0, le=1000, description="checkpoints kept at even parts of the run, and at its start")
    environment: EnvironmentConfig = EnvironmentConfig()
    learner: SerializeAsAny[LearnerSettings] = Field(A3CSettings(), description="settings of the algorithm")
    network: SerializeAsAny[Section] = Field(DenseSettings(), description="settings of the model")
    exchange: SerializeAsAny[Section] = Field(ExchangeConfig(), description="settings of the topology")
    schedule: ScheduleConfig = ScheduleConfig()
    pace: PaceConfig = PaceConfig()

    @field_validator("workers", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("engine", "algorithm", "model", "topology")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        registries = {chosen.chooser: chosen.parts for chosen in SECTIONS.values()}
        {**registries, "engine": ENGINES}[str(info.field_name)].check(value)
        return value

    @field_validator("learner", "network", "exchange", mode="wrap")
    @classmethod
    def _of_its_part(cls, value: Any, handler: Any, info: ValidationInfo) -> Any:
        """Validate a section by the class that the algorithm, the model or the topology declares."""
        chooser, _, section_of = SECTIONS[str(info.field_name)]
        if chooser not in info.data:
            return None  # the part itself is unknown, which is the mistake to tell
        return read_section(section_of(info.data[chooser]), value)

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_parts(cls, values: Any) -> Any:
        """Let sections that were left out have the defaults of their own part."""
        return {**{name: {} for name in SECTIONS}, **values} if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _valid_workers(self) -> "RunConfig":
        most = MOST_WORKERS if self.runtime == "simulate" else MOST_REAL_WORKERS
        if self.span.end > most:
            raise ValueError(
                f"{self.workers!r}: at most {MOST_REAL_WORKERS:,} workers are possible with runtime: {self.runtime},"
                f" and {MOST_WORKERS:,} in virtual time"
            )
        return self

    @model_validator(mode="after")
    def _ends_on_its_clock(self) -> "RunConfig":
        if self.env_steps is not None and not self.is_virtual:
            raise ValueError(f"env_steps ends runs in virtual time: with runtime {self.runtime} the episodes do")
        return self

    @model_validator(mode="after")
    def _fitting_transport(self) -> "RunConfig":
        transport, channel = self.gradients.transport, self.gradients.channel
        if self.runtime in ("simulate", "ray") and transport != "shared":
            raise ValueError(f"exchange.transport is for processes and threads: leave it out with {self.runtime}")
        if not self.is_virtual and (reason := getattr(self.exchange, "why_not_real", None)):
            raise ValueError(f"{reason} (runtime: {self.runtime})")
        if self.runtime == "ray" and self.topology == "hogwild":
            raise ValueError("topology hogwild needs workers that share memory, and runtime ray has none")
        fitting = {"shared": "latest", "queue": "mailbox"}[transport]
        if not self.is_virtual and channel != fitting:
            raise ValueError(f"transport {transport} needs channel {fitting}")
        return self

    @model_validator(mode="after")
    def _can_be_paced(self) -> "RunConfig":
        if not self.is_paced:
            return self
        if self.is_virtual:
            raise ValueError("pace is for processes and threads: virtual time takes what its profile says anyway")
        if self.runtime == "ray":
            raise ValueError("pace is for processes and threads: with ray, messages take longer than a paced step")
        if self.topology == "hogwild":
            raise ValueError("pace needs a topology with a master, and hogwild has none")
        if self.schedule.clock == "wall":
            raise ValueError("pace lets rules act on the profile's seconds: leave schedule.clock: wall out")
        return self

    @property
    def is_virtual(self) -> bool:
        """Whether the run's clock is a simulated one."""
        return self.runtime == "simulate"

    @property
    def is_paced(self) -> bool:
        """Whether real work is to take what a cost profile says."""
        return self.pace.profile is not None

    @property
    def cost_profile(self) -> str:
        """The profile that the run's clock goes by, if it goes by any."""
        return self.pace.profile or self.profile

    @property
    def gradients(self) -> ExchangeConfig:
        """How gradients come to a master; where there is none, how word of them does."""
        given = getattr(self.exchange, "gradients", self.exchange)
        return given if isinstance(given, ExchangeConfig) else ExchangeConfig()

    @property
    def span(self) -> Span:
        """The parsed worker count."""
        return parse_workers(self.workers, self.schedule)


def read_section(settings: type[Section], value: Any) -> Section:
    """Return a section of settings.

    Args:
        settings: the class of the section.
        value: such a section, or a mapping of plain values. Values are not converted: "1" is no number.

    Raises:
        ValueError: `value` is a section of another class, or holds settings that the class does not allow.
    """
    if isinstance(value, Section) and not isinstance(value, settings):
        raise ValueError(f"is of the class {type(value).__name__}, and {settings.__name__} is needed here")
    if not isinstance(value, dict):
        return settings.model_validate(value)
    return settings.model_validate_json(json.dumps(value, default=str), strict=True)
