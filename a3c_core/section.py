"""The base of all settings, and how large their numbers may be: enough for anybody, and nothing overflows."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST_EPISODES = 10**12
MOST_SECONDS = 1e9  # 30 years
MOST_SLOWDOWN = 1e6
Cost = Annotated[float, Field(ge=0, le=1e6)]  # seconds


class Section(BaseModel):
    """A group of settings: unknown keys are errors, and values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
