"""YAML, read safely: plain data only, no duplicate keys, no aliases, no depths, and every value's line for messages.

Scalars follow YAML 1.2 where 1.1 surprises: 1e-4 is a number, `on` and `10:20` are text, and 010 is not octal.
"""

import re
from typing import Any, NamedTuple

import yaml

from a3c_core.errors import shown

Path = tuple[str | int, ...]  # keys and places in lists, from the top


class Document(NamedTuple):
    """Plain data, and the line (from 1) on which each part of it begins."""

    data: Any
    lines: dict[Path, int]


class NotYaml(ValueError):
    """The text can't be read; the message says where and why."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with fewer kinds of scalars, without aliases, and with an end to nesting before the stack's."""

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        line = self.peek_event().start_mark.line + 1
        if self.check_event(yaml.AliasEvent):
            raise NotYaml(f"line {line}: aliases (*name) are not supported")
        if self._depth == _DEEPEST:
            raise NotYaml(f"line {line}: nested more than {_DEEPEST} levels deep")
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_DEEPEST = 20  # levels; settings have three
_YAML = "tag:yaml.org,2002:"
_PLAIN = (f"{_YAML}map", f"{_YAML}seq")
_SCALARS = ("null", "bool", "int", "float", "str")
_DIGITS = list("-+.0123456789")
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", _DIGITS),
    ("float", r"[-+]?([0-9][0-9_]*\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+", _DIGITS),
):
    _Loader.add_implicit_resolver(f"{_YAML}{_tag}", re.compile(f"(?:{_pattern})$"), _first)


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
    except yaml.YAMLError as error:
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
        raise _unsupported_tag(node)
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, path, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_construct(loader, item, (*path, place), lines) for place, item in enumerate(node.value)]
    return _scalar(loader, node)


def _scalar(loader: _Loader, node: yaml.Node) -> Any:
    kind = node.tag.removeprefix(_YAML)
    if kind not in _SCALARS:
        raise _unsupported_tag(node)
    try:
        return loader.construct_object(node)
    except (ValueError, LookupError) as error:  # !!int abc, !!bool maybe, or more digits than Python reads
        raise NotYaml(f"line {node.start_mark.line + 1}: {shown(node.value)} can't be read as {kind}") from error


def _unsupported_tag(node: yaml.Node) -> NotYaml:
    return NotYaml(f"line {node.start_mark.line + 1}: not YAML of plain data: the tag {node.tag} is not supported")


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
