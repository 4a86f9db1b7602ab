"""``lower(column)`` and ``upper(column)`` of values that an index has stored: what is known of ASCII text.

Spark maps the letters of a text that is ASCII throughout byte by byte, in every release and locale and with ICU or
without (``UTF8String.toLowerCaseAscii``), and so does Arrow.  Other text is mapped by rules that depend on all of
these: the Kelvin sign becomes ``k``, a Turkish capital I with a dot ``i``.  Whether such a value satisfies a predicate
is not decided here: it might.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.expressions.tree import Call, Column, Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["cased_subject", "in_case"]

_CATALYST = "org.apache.spark.sql.catalyst.expressions."
_CASES: Mapping[str, Callable[[pa.Array], pa.Array]] = {
    _CATALYST + "Lower": pc.ascii_lower,
    _CATALYST + "Upper": pc.ascii_upper,
}


def cased_subject(subject: Expression) -> Column | None:
    """Return the column whose letters a call of ``lower`` or ``upper`` maps, or ``None``.

    A collation other than the binary one makes another type of the text, and another function of this.
    """
    match subject:
        case Call(_, (Column(type="string") as inner,), "string", "", class_name) if class_name in _CASES:
            return inner
    return None


def in_case(values: pa.Array, subject: Expression) -> tuple[pa.Array, pa.BooleanArray]:
    r"""Return the values as ``lower`` or ``upper`` gives them, and which of them are not known to become that.

    Examples
    --------
    >>> call = Call("lower", (Column("c", "string"),), "string", class_name=_CATALYST + "Lower")
    >>> [array.to_pylist() for array in in_case(pa.array(["Ab", "É"]), call)]
    [['ab', 'É'], [False, True]]
    """
    mapped = _CASES[subject.class_name](values) if isinstance(subject, Call) else values
    return mapped, pc.invert(pc.string_is_ascii(values))
