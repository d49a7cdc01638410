"""Taking the values of secrets out of a file that was written."""

from __future__ import annotations

from pathlib import Path

from headway.jobs.masking import Masker, StreamMasker

_PIECE_BYTES = 1024 * 1024


def mask_file(file: Path, masker: Masker) -> None:
    """Replace the values in `file`; one without any stays the file that it is."""
    if not _holds(file, masker):
        return
    clean = file.with_name(f"{file.name}.masked")
    stream = StreamMasker(masker)
    with file.open("rb") as source, clean.open("wb") as target:
        while piece := source.read(_PIECE_BYTES):
            target.write(stream.feed(piece))
        target.write(stream.flush())
    clean.replace(file)


def _holds(file: Path, masker: Masker) -> bool:
    overlap = max((len(pattern) for pattern in masker.patterns), default=0)
    rest = b""
    with file.open("rb") as source:
        while piece := source.read(_PIECE_BYTES):
            if masker.intervals(rest + piece):
                return True
            rest = (rest + piece)[-overlap:]
    return False
