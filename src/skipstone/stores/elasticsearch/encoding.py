"""Values as the server can compare them: whole numbers and texts whose order is the order of the values.

The server's own doubles know neither infinities nor decimals, and its texts must be Unicode.  So every value gets an
*order-preserving, exact* form: ``a < b`` exactly if ``form(a) < form(b)``, and equal exactly if equal.

=================== ======= ==========================================================================================
stored type         slot    form
=================== ======= ==========================================================================================
integers, booleans  long    the number; 0 and 1
float, double       long    the bits of the double (-0.0 as 0.0), those below the sign inverted for negative numbers
decimal, 18 digits  long    the unscaled number
decimal, wider      keyword 32 hexadecimal digits of the unscaled number plus 2^127
string              keyword itself: the server compares UTF-8 by bytes, as Spark does
binary              keyword hexadecimal digits, two for each byte
=================== ======= ==========================================================================================

NaN, text that is not UTF-8 or has more than 32,766 bytes, and other types have no form: a column with one such value
is not made searchable, and clauses on it are evaluated by Arrow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Kind", "encoded", "kind_of"]

Kind = Literal["l", "k"]

_LONGEST = 32_766
_LONG_DIGITS = 18
_BELOW_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)
_SIGN = np.uint64(1 << 63)


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of slot that values of a type go to: ``l`` (long), ``k`` (keyword), or none."""
    if pa.types.is_boolean(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return "l"
    if pa.types.is_integer(type_):
        return None if pa.types.is_uint64(type_) else "l"
    if pa.types.is_decimal128(type_):
        return "l" if type_.precision <= _LONG_DIGITS else "k"
    return "k" if _is_text(type_) or _is_bytes(type_) else None


def encoded(array: pa.Array) -> list[Any] | None:
    r"""Return the forms of values, ``None`` for nulls; no list at all when a value has no form.

    Examples
    --------
    >>> encoded(pa.array([1.5, -0.0, None])) == [4609434218613702656, 0, None]
    True
    >>> encoded(pa.array([b"a", b"\xff"])), encoded(pa.array([float("nan")]))
    (['61', 'ff'], None)
    """
    type_ = array.type
    if kind_of(type_) is None or not len(array):
        return None if kind_of(type_) is None else []
    if pa.types.is_floating(type_):
        return _doubles(array)
    if pa.types.is_decimal128(type_):
        return _decimals(array)
    if _is_text(type_) or _is_bytes(type_):
        longest = pc.max(pc.binary_length(array)).as_py() or 0
        if _is_bytes(type_):
            return None if 2 * longest > _LONGEST else [None if v is None else v.hex() for v in array.to_pylist()]
        return None if longest > _LONGEST or not _is_unicode(array) else array.to_pylist()
    return [None if v is None else int(v) for v in array.to_pylist()]


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_) or pa.types.is_large_string(type_)


def _is_bytes(type_: pa.DataType) -> bool:
    return pa.types.is_binary(type_) or pa.types.is_large_binary(type_)


def _is_unicode(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _doubles(array: pa.Array) -> list[Any] | None:
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    if np.isnan(numbers).any():
        return None
    bits = (numbers + 0.0).view(np.int64)
    return _masked(np.where(bits < 0, bits ^ _BELOW_SIGN, bits), valid)


def _decimals(array: pa.Array) -> list[Any]:
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    words = np.frombuffer(array.buffers()[1], np.dtype("<u8"))[2 * array.offset :][: 2 * len(array)].reshape(-1, 2)
    if kind_of(array.type) == "l":
        return _masked(np.ascontiguousarray(words[:, 0]).view(np.int64), valid)
    ordered = np.stack([words[:, 1] ^ _SIGN, words[:, 0]], axis=1).astype(">u8").tobytes()
    return [ordered[16 * n : 16 * n + 16].hex() if known else None for n, known in enumerate(valid)]


def _masked(numbers: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> list[Any]:
    found = numbers.tolist()
    return found if valid.all() else [n if known else None for n, known in zip(found, valid, strict=True)]
