"""YAML, read safely: plain data only, no duplicate keys, no aliases, and every value's line for messages.

Scalars follow YAML 1.2 where 1.1 surprises: 1e-4 is a number, `on` and `10:20` are text, and 010 is not octal.
"""

import re
from typing import Any, NamedTuple

import yaml

Path = tuple[str | int, ...]  # keys and places in lists, from the top


class Document(NamedTuple):
    """Plain data, and the line (from 1) on which each part of it begins."""

    data: Any
    lines: dict[Path, int]


class NotYaml(ValueError):
    """The text can't be read; the message says where and why."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with fewer kinds of scalars and without aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise NotYaml(f"line {self.peek_event().start_mark.line + 1}: aliases (*name) are not supported")
        return super().compose_node(parent, index)


_PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_DIGITS = list("-+.0123456789")
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", _DIGITS),
    ("float", r"[-+]?([0-9][0-9_]*\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+", _DIGITS),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), _first)


def read_yaml(text: str) -> Document:
    """Return the document in `text`; raise NotYaml with the reason if there is none that can be read."""
    lines: dict[Path, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return Document(None if node is None else _construct(loader, node, (), lines), lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        raise NotYaml(f"{place}not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise NotYaml(f"not YAML: {' '.join(str(error).split())}") from error


def read_scalar(text: str) -> Any:
    """Return the value that `text` stands for in a grid file, as for `--set key=text`."""
    try:
        return read_yaml(text).data
    except NotYaml:
        return text


def _construct(loader: _Loader, node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN:
        raise NotYaml(f"line {node.start_mark.line + 1}: the tag {node.tag} is not supported")
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, item, (*path, place), lines) for place, item in enumerate(node.value)]
    return loader.construct_object(node)


def _mapping(loader: _Loader, node: yaml.MappingNode, path: Path, lines: dict[Path, int]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise NotYaml(f"line {line}: a key must be a word")
        key = key_node.value
        if key in content:
            raise NotYaml(f"line {line}: {key} appears twice, first on line {lines[(*path, key)]}")
        lines[(*path, key)] = line
        content[key] = _construct(loader, value_node, (*path, key), lines)
    return content
