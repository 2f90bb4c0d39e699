"""Lines <-> commands and events: one JSON object a line, ASCII-escaped; no I/O here.

`{"type": "Stepped", "job": 7, ...fields}`. Unknown types and fields are errors that name
themselves: both sides are one version of one program.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dfly_core.records.commands import Command
from dfly_core.records.errors import DflyError
from dfly_core.records.events import Event

_TYPES: dict[str, type] = {cls.__name__: cls for cls in (*get_args(Command), *get_args(Event))}


class WireError(DflyError):
    """A line that is no command and no event of this protocol.

    `job` is the number the line carries, 0 where none can be read.
    """

    kind = "wire"

    def __init__(self, what: str, job: int = 0) -> None:
        super().__init__(what)
        self.job = job


@dataclasses.dataclass(frozen=True)
class Envelope:
    """A command or event and the number of the job it belongs to (0 for none)."""

    job: int
    body: Command | Event


def encode(job: int, body: Command | Event) -> bytes:
    """One line, newline included."""
    record = {"type": type(body).__name__, "job": job, **dataclasses.asdict(body)}
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Envelope:
    """The envelope a line holds; raises WireError that names what it does not know."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not a line of the protocol: {line[:80]!r}") from error
    if not isinstance(record, dict):
        raise WireError(f"not a record: {line[:80]!r}")
    name, job = record.pop("type", None), record.pop("job", None)
    number = job if type(job) is int else 0
    cls = _TYPES.get(name) if isinstance(name, str) else None
    if cls is None:
        raise WireError(f"unknown type {name!r}", number)
    if type(job) is not int:
        raise WireError(f"{name} without a job number")
    try:
        return Envelope(job, from_plain(cls, record, str(name)))
    except WireError as error:
        raise WireError(error.what, number) from error


class LineDecoder:
    """Bytes in any pieces -> envelopes; an unfinished line waits for its end."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Envelope]:
        """The envelopes that `data` completes."""
        self._rest += data
        while (end := self._rest.find(b"\n")) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            if line.strip():
                yield decode(line)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def from_plain(kind: Any, value: Any, where: str) -> Any:
    """`value`, as JSON gives it, made into type `kind`; raises WireError naming `where`."""
    origin = get_origin(kind)
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _record(kind, value, where)
    if origin in (Union, types.UnionType):
        return _union(get_args(kind), value, where)
    if origin is Literal:
        if value in get_args(kind):
            return value
    elif origin is tuple:
        return _tuple(get_args(kind), value, where)
    elif origin is dict and isinstance(value, dict):
        return value
    elif kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            return float(value)
    elif isinstance(kind, type) and type(value) is kind:
        return value
    raise WireError(f"{where}: {value!r} is no {kind}")


def _record(cls: type, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise WireError(f"{where}: not a record")
    hints = _hints(cls)
    for name in value:
        if name not in hints:
            raise WireError(f"{where}: unknown field {name!r}")
    try:
        return cls(**{n: from_plain(hints[n], v, f"{where}.{n}") for n, v in value.items()})
    except TypeError as error:
        raise WireError(f"{where}: {error}") from error


def _union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    rest = [kind for kind in kinds if kind is not type(None)]
    for kind in rest[:-1]:
        try:
            return from_plain(kind, value, where)
        except WireError:
            continue
    return from_plain(rest[-1], value, where)


def _tuple(kinds: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise WireError(f"{where}: not a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(from_plain(kinds[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if len(kinds) != len(value):
        raise WireError(f"{where}: {len(value)} items where {len(kinds)} belong")
    return tuple(
        from_plain(kind, item, f"{where}[{i}]")
        for i, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )
