"""The reader for torch's files: what it takes, and what it refuses by name."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from dfly_core.convert.stored import StoredTensor, blocks, check_view
from dfly_core.convert.torchfile import read_torch
from dfly_core.convert.unpickle import ALLOWED, MAX_OPCODES, unpickle
from dfly_core.records.errors import Refused
from tests.convert.small import dense, raw, small_weights, write_bin
from tests.convert.torchlike import (
    View,
    integer,
    pickled,
    state_dict,
    tensor,
    text,
    write_legacy,
    write_zip,
)

ARRAY = np.arange(24, dtype=np.float32)


def bits(stored: StoredTensor, limit: int = 1 << 24) -> np.ndarray:
    """All of a tensor, put together from its blocks."""
    check_view("it", stored)
    return np.concatenate(list(blocks(stored, limit)))


def one_view(path: Path, view: View, legacy: bool = False) -> StoredTensor:
    """A file with one tensor over ARRAY's storage, read back."""
    body = state_dict({"w": view}, legacy)
    content = raw(ARRAY, view.dtype)
    if legacy:
        write_legacy(path, body, {view.key: (len(ARRAY), content)})
    else:
        write_zip(path, body, {view.key: [content]})
    return read_torch(path)["w"]


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("limit", [1, 1 << 24], ids=["row by row", "whole"])
@pytest.mark.parametrize(
    ("shape", "strides", "offset"),
    [
        ((4, 6), (6, 1), 0),
        ((2, 6), (6, 1), 12),
        ((6, 4), (1, 6), 0),  # transposed
        ((3, 2), (6, 2), 1),  # every second column, from the second element on
        ((2, 3, 4), (12, 4, 1), 0),
        ((4, 2, 3), (1, 12, 4), 0),
        ((5,), (4,), 3),
        ((1, 1), (99, 77), 23),  # strides of axes of one do not matter
    ],
)
def test_a_view_reads_as_numpy_would_index_it(
    tmp_path: Path,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    limit: int,
    legacy: bool,
) -> None:
    stored = one_view(tmp_path / "f", View("7", "F32", 24, shape, strides, offset), legacy)
    index = np.full((), offset)
    for size, stride in zip(shape, strides, strict=True):
        index = index[..., None] + np.arange(size) * stride
    assert np.array_equal(bits(stored, limit).view(np.float32), ARRAY[index])


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F32"])
@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_every_float_type_comes_back_bit_for_bit(tmp_path: Path, dtype: str, legacy: bool) -> None:
    weights = small_weights()
    write_bin(tmp_path / "f", weights, dtype, legacy)
    found = read_torch(tmp_path / "f")
    assert found.keys() == weights.keys()
    for name, array in weights.items():
        assert found[name].dtype == dtype
        assert bits(found[name]).tobytes() == raw(array, dtype)


@pytest.mark.parametrize("wrapper", ["", "state_dict", "model"])
@pytest.mark.parametrize("parameter", [False, True])
def test_wrappers_and_parameters_are_taken_off(
    tmp_path: Path, wrapper: str, parameter: bool
) -> None:
    weights = small_weights()
    write_bin(tmp_path / "f", weights, wrapper=wrapper, parameter=parameter)
    assert read_torch(tmp_path / "f").keys() == weights.keys()


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "said"),
    [
        ((5, 6), (6, 1), 0, "reaches byte 120 of a storage of 96"),
        ((4, 6), (6, 1), 1, "reaches byte 100 of a storage of 96"),
        ((4, 6), (0, 1), 0, "overlapping strides"),
        ((4, 6), (3, 1), 0, "overlapping strides"),
        ((4, 0), (1, 1), 0, "is empty"),
        ((), (), 0, "is empty"),
    ],
)
def test_a_view_that_is_no_weight_is_refused(
    tmp_path: Path, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, said: str
) -> None:
    stored = one_view(tmp_path / "f", View("0", "F32", 24, shape, strides, offset))
    with pytest.raises(Refused, match=said):
        check_view("w", stored)


@pytest.mark.parametrize(
    ("pickle", "name"),
    [
        (b"cposix\nsystem\n.", "posix.system"),
        (b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R.", "builtins.eval"),
        (b"ctorch\nload\n.", "torch.load"),
        (b"ctorch.storage\n_load_from_bytes\n.", "torch.storage._load_from_bytes"),
        (b"cargparse\nNamespace\n.", "argparse.Namespace"),
        (b"\x8c\x02os\x8c\x06system\x93.", "os.system"),
        (b"ccollections\nOrderedDict.__init__\n.", "collections.OrderedDict.__init__"),
        (b"c__main__\nDrafter\n)\x81.", "__main__.Drafter"),
    ],
)
def test_a_global_outside_the_list_is_refused_by_name(pickle: bytes, name: str) -> None:
    with pytest.raises(Refused) as caught:
        unpickle(b"\x80\x02" + pickle, "f.bin")
    assert f"f.bin: the pickle holds the global {name!r}" in caught.value.what
    assert "nothing in the file was run" in caught.value.remedy


def test_the_list_of_globals_is_closed_and_inert() -> None:
    assert {name for name in ALLOWED if not name.endswith("Storage")} == {
        "collections.OrderedDict",
        "torch.Size",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
    }
    assert not any(callable(value) for value in ALLOWED.values())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"i", "opcode 0x69"),  # INST
        (b"\x81", "opcode 0x81"),  # NEWOBJ
        (b"o", "opcode 0x6f"),  # OBJ
        (b"\x97", "opcode 0x97"),  # NEXT_BUFFER
        (b"R", "fewer values"),
        (b"t", "no mark"),
        (b"h\x05", "memo 5"),
        (b"}X\x01\x00\x00\x00aK\x01sX\x01\x00\x00\x00aK\x02s", "the key 'a' twice"),
        (b"K\x01K\x02K\x03s", "no dict"),
        (b"}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00aK\x02u", "the key 'a' twice"),
        (b"}(X\x01\x00\x00\x00au", "a key without a value"),
        (b"}])Q", "a storage that torch.save does not write"),
        (b"}(]K\x01u", "a key that is a list"),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)R", "with arguments that torch.save does not"),
        (b"K\x01)R", "a call of something that is no function"),
        (b"X\x02\x00\x00\x00\xff\xff", "not UTF-8"),
        (b"\x8a\x20" + b"\x01" * 32, "a number of 32 bytes"),
        (b"X\xff\xff\xff\xffab", "ends at byte"),
        (b"C", "ends at byte"),
        (b"c" + b"x" * 400, "a name without an end"),
        (b"\x80\x09", "protocol 9"),
        (b"(" * (MAX_OPCODES + 1), "more than any state dict needs"),
    ],
)
def test_what_torch_never_writes_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(Refused) as caught:
        unpickle(pickled(body), "f.bin")
    assert said in caught.value.what


def test_module_versions_on_the_state_dict_are_read_over() -> None:
    body = b"ccollections\nOrderedDict\n)R}" + text("_metadata") + b"}sb"
    assert unpickle(pickled(body), "f.bin")[0] == {}


def test_storages_must_be_as_long_as_their_tensors_say(tmp_path: Path) -> None:
    view = dense("0", (4, 6), "F32")
    write_zip(tmp_path / "f", state_dict({"w": view}), {"0": [raw(ARRAY, "F32")[:-4]]})
    with pytest.raises(Refused, match="has 92 bytes where its 24 elements of F32 need 96"):
        read_torch(tmp_path / "f")
    write_zip(tmp_path / "f", state_dict({"w": view}), {})
    with pytest.raises(Refused, match="storage '0' of 'w' is missing"):
        read_torch(tmp_path / "f")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"K\x01", "holds no state dict"),
        (b"}", "holds no state dict"),
        (b"}" + text("a") + b"K\x01s", "'a' is a int, not a tensor"),
        (b"}(" + text("model") + b"}" + text("state_dict") + b"}u", "holds both"),
    ],
)
def test_a_pickle_that_is_no_state_dict_is_refused(tmp_path: Path, body: bytes, said: str) -> None:
    write_zip(tmp_path / "f", body, {})
    with pytest.raises(Refused, match=said):
        read_torch(tmp_path / "f")


def rezip(path: Path, names: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> None:
    """A zip with exactly these entries."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in names:
            archive.writestr(name, content)


PICKLE = pickled(state_dict({"w": dense("0", (4, 6), "F32")}))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([("a/data.pkl", PICKLE), ("a/data/0", b""), ("../evil", b"x")], "points elsewhere"),
        ([("a/data.pkl", PICKLE), ("/etc/evil", b"x")], "points elsewhere"),
        ([("a/data.pkl", PICKLE), ("a/../../evil", b"x")], "points elsewhere"),
        ([("a/data.pkl", PICKLE), ("b/data.pkl", PICKLE)], "holds 2 entries named data.pkl"),
        ([("a/other", PICKLE)], "holds 0 entries named data.pkl"),
        ([("a/data.pkl", PICKLE), ("a/byteorder", b"big")], "not little-endian"),
    ],
)
def test_zip_entries_are_checked_by_name(
    tmp_path: Path, names: list[tuple[str, bytes]], said: str
) -> None:
    rezip(tmp_path / "f", names)
    with pytest.raises(Refused, match=said):
        read_torch(tmp_path / "f")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_entry_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    rezip(tmp_path / "f", [("a/data.pkl", PICKLE), ("a/data/0", b"1"), ("a/data/0", b"2")])
    with pytest.raises(Refused, match="'a/data/0' twice"):
        read_torch(tmp_path / "f")


def test_a_compressed_entry_is_refused(tmp_path: Path) -> None:
    rezip(tmp_path / "f", [("a/data.pkl", PICKLE)], zipfile.ZIP_DEFLATED)
    with pytest.raises(Refused, match="compressed"):
        read_torch(tmp_path / "f")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs pointer"),
        (b"\0" * 257 + b"ustar" + b"\0" * 250, "tar archive"),
        (b"hello", "no file torch.save writes"),
        (b"", "no file torch.save writes"),
        (pickled(integer(5)), "not one torch.save writes"),
        (b"PK\x03\x04 nothing more", "cut short"),
    ],
)
def test_other_files_are_told_apart(tmp_path: Path, head: bytes, said: str) -> None:
    (tmp_path / "f").write_bytes(head)
    with pytest.raises(Refused, match=said):
        read_torch(tmp_path / "f")


def test_a_legacy_file_with_a_storage_cut_or_listed_twice_is_refused(tmp_path: Path) -> None:
    path, view = tmp_path / "f", dense("9", (4, 6), "F32")
    storages = {"9": (24, raw(ARRAY, "F32"))}
    write_legacy(path, state_dict({"w": view}, True), storages)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(Refused, match="is cut short: storage '9'"):
        read_torch(path)
    keys = b"](" + text("9") + text("9") + b"e"
    write_legacy(path, state_dict({"w": view}, True), storages, keys)
    with pytest.raises(Refused, match="listed twice"):
        read_torch(path)


def test_a_pickle_that_was_changed_in_its_zip_is_found_by_its_checksum(tmp_path: Path) -> None:
    write_bin(tmp_path / "f", small_weights())
    content = (tmp_path / "f").read_bytes()
    changed = content.replace(b"layers.0.mlp.up_proj", b"layers.9.mlp.up_proj", 1)
    assert changed != content
    (tmp_path / "f").write_bytes(changed)
    with pytest.raises(Refused, match=r"data\.pkl does not match its checksum"):
        read_torch(tmp_path / "f")


def test_a_tensor_of_another_kind_in_the_same_file_does_not_disturb(tmp_path: Path) -> None:
    # As an optimizer's step counter: int64, no axes, next to the weights.
    step = b"ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage")
    step += b"ctorch\nLongStorage\n" + text("1") + text("cpu") + integer(1) + b"tQ"
    step += integer(0) + b"))\x89ccollections\nOrderedDict\n)RtR"
    view = dense("0", (4, 6), "F32")
    body = b"}(" + text("w") + tensor(view) + text("step") + step + b"u"
    write_zip(tmp_path / "f", body, {"0": [raw(ARRAY, "F32")], "1": [b"\1" + b"\0" * 7]})
    found = read_torch(tmp_path / "f")
    assert (found["step"].dtype, found["step"].shape) == ("I64", ())
    assert np.array_equal(bits(found["w"]).view(np.float32), ARRAY.reshape(4, 6))


def test_a_pipe_in_the_place_of_weights_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "draft.pt")
    with pytest.raises(Refused, match="is no file: name a folder"):
        read_torch(tmp_path / "draft.pt")
