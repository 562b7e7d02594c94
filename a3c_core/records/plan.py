"""study.json: what a study set out to run."""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from a3c_core.errors import printable, shown
from a3c_core.records.layout import STUDY, ResultsError
from a3c_core.schedules import ScheduleConfig, parse_workers

_BOUNDS = ("auto_min", "auto_max")


class _Settings(BaseModel):
    """What every version has had of a run's settings; the others may be there or not."""

    model_config = ConfigDict(extra="allow")

    schedule: dict[str, Any] = {}
    environment: dict[str, Any] = {}
    learner: dict[str, Any] = {}
    exchange: dict[str, Any] = {}
    workers: str | int
    episodes: int = Field(ge=1)

    @field_validator("workers")
    @classmethod
    def _a_worker_count(cls, value: str | int, others: Any) -> str | int:
        schedule = others.data.get("schedule", {})
        parse_workers(str(value), ScheduleConfig(**{name: schedule[name] for name in _BOUNDS if name in schedule}))
        return value


class _Chosen(BaseModel):
    model_config = ConfigDict(extra="allow")

    seed: int


def _printable(text: str) -> str:
    if printable(text) != text:
        raise ValueError(f"holds control characters, which a terminal would obey: {shown(text)}")
    return text


_Text = Annotated[str, AfterValidator(_printable)]


class _Cell(BaseModel):
    id: Annotated[_Text, Field(pattern=r"^[^/]+$")]  # the name of its directory
    settings: _Chosen
    config: _Settings


class _Tracking(BaseModel):
    every: int = Field(1, ge=1)


class _Grid(BaseModel):
    base: dict[str, Any] = {}
    axes: dict[str, list[Any]] = {}
    cases: dict[str, dict[str, Any]] = {}
    seeds: list[int]
    tracking: _Tracking = _Tracking()


class _Plan(BaseModel):
    """What must be in the file; more may be."""

    name: Annotated[_Text, Field(pattern=r"^[^\n\t]+$")]  # a line
    question: _Text
    grid: _Grid | None = None  # a study that was fetched from MLflow has none
    axes: dict[str, list[Any]]
    cells: list[_Cell]

    @field_validator("grid", mode="before")
    @classmethod
    def _none_if_empty(cls, value: Any) -> Any:
        return None if value == {} else value


def read_plan(folder: Path) -> dict[str, Any] | None:
    """Return the content of a study's study.json, or None if there is none; say what is wrong with a bad one."""
    path = folder / STUDY
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_bytes())
        _Plan.model_validate(content)
    except OSError as error:
        raise ResultsError(f"{path} can't be read: {error.strerror}") from error
    except ValidationError as error:
        raise ResultsError(f"{path} is not a study's plan: {_first(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path} is not a study's plan: it is no JSON ({error})") from error
    return content


def _first(error: ValidationError) -> str:
    """Return the first thing that is wrong, with its place."""
    found = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, found["loc"]))
    return f"{place}: {found['msg']}" if place else found["msg"]
