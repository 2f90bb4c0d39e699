"""A conversion told before it is done: every gate, sizes, room, and what drafting would bring."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from dfly_core.convert.convert import named_source
from dfly_core.convert.place import (
    check_output,
    check_outside,
    check_space,
    output_folder,
    path_fault,
    room_at,
)
from dfly_core.convert.plan import (
    DTYPES,
    check_config,
    check_options,
    output_sizes,
    read_contents,
)
from dfly_core.convert.source import TORCH_SUFFIXES, Source
from dfly_core.engine.predict import KnownTarget, predict, rests_on
from dfly_core.model.config import (
    DEFAULT_DRAFT,
    DEFAULT_TARGET,
    DEFAULT_TARGET_SIZES,
    DrafterConfig,
    check_target_sizes,
    misfit,
    read_config,
    tensor_shapes,
)
from dfly_core.model.locate import EMBEDDED, cached_folder
from dfly_core.records.checked import Checked, Sizing
from dfly_core.records.commands import Convert
from dfly_core.records.errors import DflyError, Missing
from dfly_core.records.events import Progress
from dfly_core.records.visible import one_line

Known = Callable[[str, Mapping[str, Any]], KnownTarget]  # of a target's name and config
Found = TypeVar("Found")
_STATED = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}


@dataclass
class _Page:
    """What is found on the way; `gate` keeps a refusal and goes on."""

    layout: str | None = None
    repository: str | None = None
    revision: str | None = None
    about: str = ""
    source_bytes: int | None = None
    download_bytes: int = 0
    sizes: tuple[Sizing, ...] = ()
    rests_on: str = ""
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    refused: list[str] = field(default_factory=list)

    def gate(self, check: Callable[[], Found]) -> Found | None:
        """What a check returns, None where it refuses."""
        try:
            return check()
        except DflyError as error:
            if str(error) not in self.refused:
                self.refused.append(str(error))
            return None


def check(
    command: Convert,
    cancelled: Callable[[], bool],
    loaded: KnownTarget | None,
    known: Known,
) -> Iterator[Progress | Checked]:
    """Tell what `convert` would do: Progress, then Checked. Writes nothing.

    `loaded` is the target that is loaded, `known` what is known of others here. Raises Stopped
    when cancelled; everything else is a line of the page.
    """
    page, output = _Page(), None
    page.gate(lambda: check_options(command.quantize, command.dtype))
    if command.output is not None:
        output = page.gate(lambda: output_folder(command.output))
    if output is not None:
        page.gate(partial(check_output, output, command.force))
    try:
        config = yield from _look(command, output, cancelled, page)
    except DflyError as error:
        config = None
        page.refused.append(str(error))
    if config is not None:
        _predict(config, _target(config, command, loaded, known), page)
    place = None if output is None else page.gate(partial(room_at, output))
    yield Checked(
        source=command.source or DEFAULT_DRAFT,
        layout=page.layout,
        repository=page.repository,
        revision=page.revision,
        about=page.about,
        source_bytes=page.source_bytes,
        download_bytes=page.download_bytes,
        free_bytes=place[1] if place else None,
        sizes=page.sizes,
        rests_on=page.rests_on,
        notes=page.notes,
        unchecked=page.unchecked,
        refused=tuple(page.refused),
    )


def _look(
    command: Convert, output: Path | None, cancelled: Callable[[], bool], page: _Page
) -> Generator[Progress, None, DrafterConfig | None]:
    found = named_source(command)
    if isinstance(found, Source):
        return _local(command, output, found, page)
    # Imports the hub's client, for this alone.
    from dfly_core.convert.hub import Survey, fetch, survey

    name, revision = found
    surveyed = yield from survey(name, revision, cancelled)
    if isinstance(surveyed, Survey) and surveyed.missing_bytes:
        return _remote(command, output, surveyed, page)
    if isinstance(surveyed, Survey):
        # All of it is here: this only links it, and it can be looked at as a folder.
        surveyed = yield from fetch(name, revision, cancelled)
    return _local(command, output, surveyed, page)


def _local(
    command: Convert, output: Path | None, source: Source, page: _Page
) -> DrafterConfig | None:
    """A folder or file: everything but the values can be told."""
    page.layout, page.repository, page.revision = source.layout, source.repository, source.revision
    page.source_bytes = sum(path.stat().st_size for path in source.files)
    page.unchecked = _values(command, [path.name for path in source.files])
    if output is not None:
        page.gate(partial(check_outside, source, output))
    found = page.gate(lambda: read_contents(source, command.quantize, command.dtype))
    if found is None:
        return None
    page.notes = found.notes
    plain = [(item.name, item.stored.shape, item.dtype) for item in found.items]
    _sizes(output_sizes(plain), found.config, page)
    if output is not None:
        page.gate(partial(check_space, output, found.output_bytes))
    return found.config


def _remote(
    command: Convert, output: Path | None, survey: Any, page: _Page
) -> DrafterConfig | None:
    """A repository whose weights are still to be fetched: config, sizes and room."""
    page.layout, page.repository, page.revision = survey.layout, survey.repository, survey.commit
    page.source_bytes, page.download_bytes = survey.bytes, survey.missing_bytes
    values = _values(command, [file.name for file in survey.weights])
    page.unchecked = ("names, shapes and types of the tensors", *values)
    page.gate(survey.check_room)
    config = page.gate(
        lambda: check_config(
            survey.config, survey.repository, survey.layout, command.quantize, command.dtype
        )
    )
    if config is None:
        return None
    stated = survey.config.get("torch_dtype") or survey.config.get("dtype")
    kind = DTYPES.get(command.dtype or "") or _STATED.get(str(stated), "BF16")
    sizes = output_sizes([(name, shape, kind) for name, shape in tensor_shapes(config).items()])
    _sizes(sizes, config, page)
    needed = sizes.get(command.quantize, sizes[None])
    if output is not None:
        if _one_disk(output, survey.cache):
            needed += survey.missing_bytes
        page.gate(partial(check_space, output, needed))
    return config


def _values(command: Convert, files: Sequence[str]) -> tuple[str, ...]:
    """What a conversion may still refuse once it reads the weights."""
    found = ["NaN or infinity among the weights"]
    if command.dtype == "f16":
        found.append("values too large for f16")
    if any(name.endswith(TORCH_SUFFIXES) for name in files):
        found.append("the checksums of the torch files")
    return tuple(found)


def _one_disk(output: Path, cache: Path) -> bool:
    """Whether download and output share a disk; unless that is sure, they are counted apart."""
    try:
        return room_at(output)[0].stat().st_dev == room_at(cache)[0].stat().st_dev
    except (OSError, DflyError):
        return False


def _sizes(sizes: Mapping[int | None, int], config: DrafterConfig, page: _Page) -> None:
    page.sizes = tuple(Sizing(bits, size) for bits, size in sizes.items())
    page.about = (
        f"{config.num_hidden_layers} draft layers, hidden size {config.hidden_size}, vocabulary "
        f"{config.vocab_size}, block size {config.block_size}, for a target of "
        f"{config.target_num_hidden_layers} layers"
    )


def _target(
    config: DrafterConfig, command: Convert, loaded: KnownTarget | None, known: Known
) -> KnownTarget | str:
    """The target whose cost serves the prediction, or why none does.

    The one that was named; else the loaded one, one of those at hand, the official one.
    """
    if command.target is not None:
        return _named(config, command.target, loaded, known)
    if loaded is not None and not misfit(config, loaded.config):
        return loaded
    for name in (*command.targets, str(EMBEDDED / "target")):
        try:
            sizes = _sizes_of(name)
        except DflyError:
            continue  # it was found, not named: another may serve
        if not misfit(config, sizes):
            return known(name, sizes)
    if not misfit(config, DEFAULT_TARGET_SIZES):
        return known(DEFAULT_TARGET, DEFAULT_TARGET_SIZES)
    return "no target at hand fits this drafter; name one"


def _named(
    config: DrafterConfig, name: str, loaded: KnownTarget | None, known: Known
) -> KnownTarget | str:
    try:
        sizes: Mapping[str, Any] = _sizes_of(name)
    except DflyError as error:
        if name != DEFAULT_TARGET:
            return one_line(str(error))
        sizes = DEFAULT_TARGET_SIZES  # known without having it
    if fault := misfit(config, sizes):
        wanted, has = fault
        called = one_line(name, 200)
        return f"the drafter was made for a target with {wanted}, {called} has {has}"
    same = loaded is not None and loaded.name == name and loaded.config == sizes
    return loaded if same and loaded is not None else known(name, sizes)


def _sizes_of(name: str) -> dict[str, Any]:
    """The config.json of a target on this machine; raises Missing or Refused."""
    shown = one_line(name, 200)
    try:
        folder = Path(name).expanduser()
        found = folder if folder.is_dir() else cached_folder(name)
    except (OSError, RuntimeError, ValueError) as error:
        raise Missing(f"the target {shown} can't be read ({path_fault(error)})") from error
    if found is None:
        raise Missing(f"the target {shown} can't be found on this machine")
    return read_config(found)


def _predict(config: DrafterConfig, target: KnownTarget | str, page: _Page) -> None:
    if isinstance(target, str):
        page.rests_on = f"speed unknown: {target}"
        return
    where = f"the config.json of {one_line(target.name, 200)}"
    try:
        check_target_sizes(target.config, where)
        found = [(s, predict(config, target, s.bits or 16)) for s in page.sizes]
    except DflyError as error:
        page.rests_on = f"speed unknown: {error.what}"
        return
    except (KeyError, TypeError, ValueError, ArithmeticError):
        page.rests_on = f"speed unknown: {where} lacks sizes"
        return
    figures = [n for _, p in found if p for n in (p.draft_steps, p.speedup)]
    if not (0 < target.bits <= 32 and all(math.isfinite(n) for n in figures)):
        page.rests_on = f"speed unknown: {where} has impossible sizes"
        return
    page.rests_on = rests_on(target)
    page.sizes = tuple(
        replace(s, draft_steps=p.draft_steps, speedup=p.speedup, tps=p.tps) if p else s
        for s, p in found
    )
