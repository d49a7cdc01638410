"""Makes a recipe of an input spec, in the parent."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from headway.backends.spec import BackendSpec
from headway.core.distributions import Constant, draw_int
from headway.core.errors import ConfigError
from headway.load.inputs.conversations_file import RowUse, prepare_file
from headway.load.inputs.counted import CountedVocabulary, count_vocabulary
from headway.load.inputs.counting import TokenCounter
from headway.load.inputs.formats import detect_format
from headway.load.inputs.importing import Imported, Source
from headway.load.inputs.keys import derive_key
from headway.load.inputs.lengths import first_input_lengths, import_lengths
from headway.load.inputs.plugin import prepare_plugin
from headway.load.inputs.recipe import Recipe, workload_hash
from headway.load.inputs.trace import (
    first_trace_lengths,
    import_trace,
    read_offsets,
    trace_recipe,
)
from headway.load.spec import (
    FileInputSpec,
    InputSpec,
    PluginInputSpec,
    SyntheticInputSpec,
    TraceInputSpec,
)

T = TypeVar("T")

_CHECKED_LENGTHS = 16
_FIRST_CONVERSATION_S = 60.0
"""For a plug-in: it may load a data set first, but must not keep a run from ever starting."""
_SYNTHETIC_PLACE_FIELDS = {"lengths", "tokenizer"}


async def prepare(
    inputs: InputSpec,
    backend: BackendSpec,
    seed: int,
    work_dir: Path,
    counter: TokenCounter | None = None,
) -> Recipe:
    """Validate the inputs and do once what every worker would otherwise do again.

    Args:
        inputs: What is to be sent.
        backend: What it is sent by; decides which parts of a row are kept.
        seed: The run's seed.
        work_dir: An existing directory that the workers can read; normalised rows go there.
        counter: Asks the target for token counts; None: it has no way to tell.

    Raises:
        InputError: a file is empty or unusable; the text names it and its lines.
        ConfigError: the inputs and the backend or the installed extras do not fit.
    """
    preparation = _Preparation(backend, seed, work_dir, counter)
    match inputs:
        case SyntheticInputSpec():
            return await preparation.synthetic(inputs)
        case FileInputSpec():
            return await preparation.file(inputs)
        case TraceInputSpec():
            return await preparation.trace(inputs)
        case PluginInputSpec():
            return await _prepare_plugin(inputs, seed)


async def _prepare_plugin(spec: PluginInputSpec, seed: int) -> Recipe:
    scope = asyncio.timeout(_FIRST_CONVERSATION_S)
    try:
        async with scope:
            return await in_thread(lambda stop: prepare_plugin(spec, seed))
    except TimeoutError:
        if not scope.expired():
            raise  # The plug-in's own.
        raise ConfigError(
            f"inputs {spec.name} did not make their first conversation within "
            f"{_FIRST_CONVERSATION_S:g} s"
        ) from None


def offsets_ns(recipe: Recipe) -> Sequence[int]:
    """A trace's arrivals in nanoseconds since its first one: ascending, not scaled.

    Raises:
        ConfigError: the inputs are not a trace.
    """
    return read_offsets(recipe)


class _Preparation:
    """What the three kinds of inputs need alike."""

    def __init__(
        self, backend: BackendSpec, seed: int, work_dir: Path, counter: TokenCounter | None
    ) -> None:
        self._seed = seed
        self._work_dir = work_dir
        self._counter = counter
        self._use = RowUse(
            single_turn=backend.kind == "openai-embeddings",
            keep_fields=backend.kind in ("http", "python", "headway-jobs", "plugin"),
        )

    async def synthetic(self, spec: SyntheticInputSpec) -> Recipe:
        if spec.turns != Constant(value=1):
            self._refuse_turns()
        imported = await self._lengths(spec.lengths) if spec.lengths else None
        rng = random.Random(derive_key(self._seed, 0, "checked lengths"))
        if imported:
            lengths = first_input_lengths(imported.rows, _CHECKED_LENGTHS)
        else:
            lengths = [draw_int(spec.prompt_tokens, rng, 1) for _ in range(_CHECKED_LENGTHS)]
        counted = await self._count([one + spec.prefix_tokens for one in lengths], spec.tokenizer)
        return _synthetic_recipe(spec, imported, counted)

    async def file(self, spec: FileInputSpec) -> Recipe:
        if spec.turns:
            self._refuse_turns()
        file_format = detect_format(spec.path) if spec.format == "auto" else spec.format
        source = Source(spec.path, file_format, self._work_dir)
        return await in_thread(lambda stop: prepare_file(spec, source, self._use, stop))

    async def trace(self, spec: TraceInputSpec) -> Recipe:
        imported, reader = await in_thread(lambda stop: import_trace(spec, self._work_dir, stop))
        if reader.form == "sessions":
            self._refuse_turns()
        rng = random.Random(derive_key(self._seed, 0, "checked lengths"))
        lengths = [
            one or draw_int(spec.prompt_tokens, rng, 1)
            for one in first_trace_lengths(imported.rows, reader.form, _CHECKED_LENGTHS)
        ]
        counted = await self._count(lengths, spec.tokenizer)
        return trace_recipe(spec, imported, reader, counted)

    async def _lengths(self, path: Path) -> Imported:
        source = Source(path, detect_format(path), self._work_dir)
        return await in_thread(lambda stop: import_lengths(source, stop))

    async def _count(self, lengths: list[int], tokenizer: Path | None) -> CountedVocabulary:
        return await count_vocabulary(self._counter, tokenizer, lengths, self._seed)

    def _refuse_turns(self) -> None:
        if self._use.single_turn:
            raise ConfigError("openai-embeddings has no conversations: leave out turns")


def _synthetic_recipe(
    spec: SyntheticInputSpec, imported: Imported | None, counted: CountedVocabulary
) -> Recipe:
    parameters: dict[str, Any] = spec.model_dump(mode="json", exclude=_SYNTHETIC_PLACE_FIELDS)
    # The words themselves are left out: another server's vocabulary makes no other workload.
    parameters["unit"] = counted.unit
    return Recipe(
        spec=spec.model_dump(mode="json"),
        vocabulary=counted.vocabulary,
        rows=imported.rows if imported else None,
        workload_hash=workload_hash(parameters, imported.sha256 if imported else None),
        notes=(counted.note, *(imported.notes if imported else ())),
        provenance={"prompt_tokens": counted.provenance},
    )


class _Stopped(Exception):
    """The thread's work is no longer wanted."""


async def in_thread(work: Callable[[Callable[[], None]], T]) -> T:
    """Run `work` in a thread, and end it when the wait for it is cancelled.

    Reading a large file takes a while; the event loop stays free for Ctrl-C meanwhile.

    Args:
        work: Called with a function that it calls often, and that raises when it is to end.
    """
    stopped = threading.Event()

    def check_stop() -> None:
        if stopped.is_set():
            raise _Stopped

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()

    def carry_out() -> None:
        try:
            done = work(check_stop)
        except BaseException as error:  # noqa: BLE001  raised where it is awaited
            _tell(loop, ended, None, error)
        else:
            _tell(loop, ended, done, None)

    # A thread that the process can leave behind: somebody's generator may never return, and the
    # threads of the event loop's own pool are waited for at the end.
    threading.Thread(target=carry_out, name="headway inputs", daemon=True).start()
    try:
        return await ended
    finally:
        stopped.set()


def _tell(
    loop: asyncio.AbstractEventLoop,
    ended: asyncio.Future[T],
    done: T | None,
    error: BaseException | None,
) -> None:
    def settle() -> None:
        if ended.done():
            return  # Nobody waits any more.
        if isinstance(error, StopIteration):
            ended.set_exception(RuntimeError(f"{error!r} came out of the inputs"))
        elif error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(cast(T, done))

    with contextlib.suppress(RuntimeError):  # The loop is closed: the same.
        loop.call_soon_threadsafe(settle)
