"""The hashes by which the values of a set are put into buckets: part of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from skipstone.toolkit.values import is_binary_like

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["set_hashes"]

_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_FEW = 32
"""Texts that are hashed faster one by one than a byte of each at a time: a single long one would take seconds."""


def set_hashes(values: pa.Array) -> npt.NDArray[np.uint64] | None:
    """Hash values to 64 bits, equal ones alike; ``None`` for a type that has no hash here.

    Text and binary: FNV-1a of the bytes.  Numbers, dates and times: their value as a signed number of 64 bits, of
    floating point the bits of the double with one zero and one NaN, of decimals both halves of the unscaled number, the
    upper one hashed first.  Each goes through the finaliser of SplitMix64.  A null, which no lookup looks for, is 0.
    """
    type_ = values.type
    if is_binary_like(type_):
        return _text_hashes(values)
    if pa.types.is_floating(type_):
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        return _mixed(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if pa.types.is_decimal128(type_):
        filled = values.fill_null(0)
        halves = np.frombuffer(filled.buffers()[1] or b"", np.uint64)
        halves = halves[2 * filled.offset : 2 * (filled.offset + len(filled))].reshape(-1, 2)
        return _mixed(_mixed(halves[:, 1]) ^ halves[:, 0])
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        signed = values.view(pa.int64()) if pa.types.is_uint64(type_) else values.cast(pa.int64())
        return _mixed(signed.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64))
    if pa.types.is_temporal(type_) and type_.bit_width in (32, 64) and not pa.types.is_interval(type_):
        plain = values.view(pa.int32() if type_.bit_width == 32 else pa.int64())
        return set_hashes(plain)
    return None


def _text_hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash each distinct text once, a byte of all of them at a time."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary
    width = np.int64 if pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets if offsets is not None else b"", width)
    starts = starts[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    hashes = np.full(len(texts), _FNV_OFFSET, np.uint64)
    if len(texts):
        lengths = np.diff(starts)
        rest = np.argsort(-lengths, kind="stable")
        for place in range(int(lengths.max())):
            rest = rest[: np.searchsorted(-lengths[rest], -place)]  # those longer than this
            if len(rest) < _FEW:
                for text in rest.tolist():
                    hashes[text] = _continued(int(hashes[text]), content[starts[text] + place : starts[text + 1]])
                break
            hashes[rest] = (hashes[rest] ^ content[starts[rest] + place]) * np.uint64(_FNV_PRIME)
    mixed = _mixed(hashes)
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return np.append(mixed, np.uint64(0))[codes]


def _continued(found: int, content: npt.NDArray[np.uint8]) -> int:
    """Hash on over the rest of one text."""
    for byte in content.tobytes():
        found = (found ^ byte) * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return found


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Let every bit of a number change every other (the finaliser of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
