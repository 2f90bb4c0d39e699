"""Reads the pickles torch.save writes without importing or running anything.

Not Python's unpickler: a small machine that knows the opcodes torch.save uses and builds inert
records. A global is a name looked up in a closed list; any other name, and any other opcode,
is refused where it stands. Opcodes as in CPython's pickletools; layouts as in torch 2.13's
serialization.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dfly_core.records.errors import Refused

# The release's pickle is 6 KB; a training file with target and optimizer stays under 1 MB.
MAX_BYTES = 8 << 20
MAX_OPCODES = 200_000
REMEDY = "save the weights again as a plain state dict; nothing in the file was run"


@dataclass(frozen=True)
class Global:
    """A name from the closed list; `dtype` is set for storage types."""

    name: str
    dtype: str | None = None


@dataclass(frozen=True)
class Storage:
    """What a tensor is a view of: raw bytes elsewhere in the file, under `key`."""

    dtype: str
    key: str
    elements: int


@dataclass(frozen=True)
class Tensor:
    """A view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


_STORAGES = {
    "BFloat16": "BF16", "Half": "F16", "Float": "F32", "Double": "F64", "Long": "I64",
    "Int": "I32", "Short": "I16", "Char": "I8", "Byte": "U8", "Bool": "BOOL",
}  # fmt: skip
_ORDERED_DICT = "collections.OrderedDict"
_TENSOR = "torch._utils._rebuild_tensor_v2"
_PARAMETER = "torch._utils._rebuild_parameter"
_SIZE = "torch.Size"
ALLOWED = {
    name: Global(name) for name in (_ORDERED_DICT, _TENSOR, _PARAMETER, _SIZE)
} | {
    f"torch.{kind}Storage": Global(f"torch.{kind}Storage", dtype)
    for kind, dtype in _STORAGES.items()
}  # fmt: skip

_MARK = object()


def unpickle(data: bytes | memoryview, where: str, start: int = 0) -> tuple[Any, int]:
    """Read one pickle from `data[start:]`; returns the value and the position behind it.

    Values are None, bool, int, float, str, bytes, list, tuple, dict and the records above.
    Raises Refused naming the global, opcode or fault.
    """
    machine = _Machine(data, where, start)
    return machine.run(), machine.position


class _Machine:
    def __init__(self, data: bytes | memoryview, where: str, start: int) -> None:
        self._data = memoryview(data)
        self._where = where
        self.position = start
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        end = self.position + MAX_BYTES
        for _ in range(MAX_OPCODES):
            opcode = self._take(1)[0]
            if opcode == 0x2E:  # STOP
                return self._pop()
            handler = _HANDLERS.get(opcode)
            if handler is None:
                raise self._fault(f"opcode 0x{opcode:02x}, which torch.save does not write")
            handler(self)
            if self.position > end:
                break
        raise self._fault("more than any state dict needs")

    def _fault(self, what: str) -> Refused:
        return Refused(f"{self._where}: the pickle holds {what} at byte {self.position}", REMEDY)

    def _take(self, count: int) -> memoryview:
        taken = self._data[self.position : self.position + count]
        if len(taken) < count:
            raise Refused(
                f"{self._where}: the pickle ends at byte {len(self._data)} in the middle",
                "the file is cut short: download it again",
            )
        self.position += count
        return taken

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _line(self) -> str:
        ahead = bytes(self._data[self.position : self.position + 256])
        end = ahead.find(b"\n")
        if end < 0:
            raise self._fault("a name without an end")
        self.position += end + 1
        return ahead[:end].decode("ascii", "backslashreplace")

    def _text(self, length: int) -> str:
        try:
            return str(self._take(length), "utf-8")
        except UnicodeDecodeError as error:
            raise self._fault("a string that is not UTF-8") from error

    def _last(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise self._fault("fewer values than an opcode takes")
        return self._stack[-1]

    def _pop(self) -> Any:
        value = self._last()
        del self._stack[-1]
        return value

    def _pop_to_mark(self) -> list[Any]:
        for depth in range(len(self._stack) - 1, -1, -1):
            if self._stack[depth] is _MARK:
                values = self._stack[depth + 1 :]
                del self._stack[depth:]
                return values
        raise self._fault("no mark where an opcode needs one")

    def _top(self, kind: type) -> Any:
        value = self._last()
        if not isinstance(value, kind):
            raise self._fault(f"no {kind.__name__} where an opcode needs one")
        return value

    # One method an opcode, in the order of the table below.

    def protocol(self) -> None:
        version = self._take(1)[0]
        if version > 5:
            raise self._fault(f"protocol {version}")

    def frame(self) -> None:
        self._take(8)

    def mark(self) -> None:
        self._stack.append(_MARK)

    def long_integer(self) -> None:
        length = self._take(1)[0]
        if length > 16:
            raise self._fault(f"a number of {length} bytes")
        self._stack.append(int.from_bytes(self._take(length), "little", signed=True))

    def short_bytes(self) -> None:
        self._stack.append(bytes(self._take(self._take(1)[0])))

    def build_tuple(self) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def append(self) -> None:
        value = self._pop()
        self._top(list).append(value)

    def appends(self) -> None:
        values = self._pop_to_mark()
        self._top(list).extend(values)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set(self._top(dict), key, value)

    def set_items(self) -> None:
        values = self._pop_to_mark()
        target = self._top(dict)
        if len(values) % 2:
            raise self._fault("a key without a value")
        for key, value in zip(values[::2], values[1::2], strict=True):
            self._set(target, key, value)

    def _set(self, target: dict[Any, Any], key: Any, value: Any) -> None:
        if not isinstance(key, (str, int)):
            raise self._fault(f"a key that is a {type(key).__name__}")
        if key in target:
            raise self._fault(f"the key {str(key)[:200]!r} twice")
        target[key] = value

    def put(self, layout: str) -> None:
        self._memo[self._number(layout)] = self._last()

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._last()

    def get(self, layout: str) -> None:
        index = self._number(layout)
        if index not in self._memo:
            raise self._fault(f"a reference to memo {index}, which is not there")
        self._stack.append(self._memo[index])

    def global_name(self) -> None:
        module, name = self._line(), self._line()
        self._push_global(f"{module}.{name}")

    def stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise self._fault("a global that is no name")
        self._push_global(f"{module}.{name}")

    def _push_global(self, name: str) -> None:
        allowed = ALLOWED.get(name)
        if allowed is None:
            raise self._fault(f"the global {name[:200]!r}, which weights do not need,")
        self._stack.append(allowed)

    def persistent_id(self) -> None:
        value = self._pop()
        # ("storage", type, key, location, elements), and in the legacy form a view, always None
        if (
            not isinstance(value, tuple)
            or len(value) not in (5, 6)
            or value[0] != "storage"
            or not isinstance(value[1], Global)
            or value[1].dtype is None
            or not isinstance(value[2], str)
            or not _is_size(value[4])
            or (len(value) == 6 and value[5] is not None)
        ):
            raise self._fault("a storage that torch.save does not write")
        self._stack.append(Storage(value[1].dtype, value[2], value[4]))

    def reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Global) or not isinstance(arguments, tuple):
            raise self._fault("a call of something that is no function")
        result = _call(function.name, arguments)
        if result is None:
            raise self._fault(f"{function.name} with arguments that torch.save does not write")
        self._stack.append(result)

    def build(self) -> None:
        # OrderedDict's `_metadata` (module versions): nothing that weights need.
        self._pop()
        self._top(dict)


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**48


def _are_sizes(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) <= 8 and all(map(_is_size, value))


def _call(name: str, arguments: tuple[Any, ...]) -> Any:
    if name == _ORDERED_DICT and not arguments:
        return {}
    if name == _SIZE and len(arguments) == 1 and _are_sizes(arguments[0]):
        return arguments[0]
    if name == _PARAMETER and len(arguments) == 3 and isinstance(arguments[0], Tensor):
        return arguments[0]
    if name == _TENSOR and len(arguments) in (6, 7):
        storage, offset, shape, strides = arguments[:4]
        if (
            isinstance(storage, Storage)
            and _is_size(offset)
            and _are_sizes(shape)
            and _are_sizes(strides)
            and len(shape) == len(strides)
        ):
            return Tensor(storage, offset, shape, strides)
    return None


def _push(make: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    return lambda machine: machine._stack.append(make(machine))


_HANDLERS: dict[int, Callable[[_Machine], None]] = {
    0x80: _Machine.protocol,
    0x95: _Machine.frame,
    ord("("): _Machine.mark,
    ord("N"): _push(lambda m: None),
    0x88: _push(lambda m: True),
    0x89: _push(lambda m: False),
    ord("K"): _push(lambda m: m._number("<B")),
    ord("M"): _push(lambda m: m._number("<H")),
    ord("J"): _push(lambda m: m._number("<i")),
    0x8A: _Machine.long_integer,
    ord("G"): _push(lambda m: m._number(">d")),
    ord("X"): _push(lambda m: m._text(m._number("<I"))),
    0x8C: _push(lambda m: m._text(m._number("<B"))),
    ord("C"): _Machine.short_bytes,
    ord(")"): _push(lambda m: ()),
    ord("t"): _Machine.build_tuple,
    0x85: _push(lambda m: (m._pop(),)),
    0x86: _push(lambda m: (m._pop(), m._pop())[::-1]),
    0x87: _push(lambda m: (m._pop(), m._pop(), m._pop())[::-1]),
    ord("]"): _push(lambda m: []),
    ord("a"): _Machine.append,
    ord("e"): _Machine.appends,
    ord("}"): _push(lambda m: {}),
    ord("s"): _Machine.set_item,
    ord("u"): _Machine.set_items,
    ord("q"): lambda m: m.put("<B"),
    ord("r"): lambda m: m.put("<I"),
    0x94: _Machine.memoize,
    ord("h"): lambda m: m.get("<B"),
    ord("j"): lambda m: m.get("<I"),
    ord("c"): _Machine.global_name,
    0x93: _Machine.stack_global,
    ord("Q"): _Machine.persistent_id,
    ord("R"): _Machine.reduce,
    ord("b"): _Machine.build,
}
