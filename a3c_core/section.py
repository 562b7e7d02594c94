"""The base of all settings."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of settings: unknown keys are errors, and values never change."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
