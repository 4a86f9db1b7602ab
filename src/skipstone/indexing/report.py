"""What a call that builds or refreshes indexes did."""

from __future__ import annotations

from dataclasses import dataclass, field

from skipstone.showing.notebook import card, count, facts, folded, items, note, size

__all__ = ["IndexingReport"]

_SHOWN_PROBLEMS = 3


@dataclass(frozen=True)
class IndexingReport:
    """What a call that builds or refreshes indexes did.

    ``left_out`` objects changed while they were read, ``untrusted`` ones were modified too shortly before; both are
    read by every query until a later refresh indexes them.  ``problems`` has a line for each object of which an index
    has nothing because it raised: queries that only this index serves read it.  ``repaired`` says that metadata was
    damaged, and by what it was made anew; ``lost`` has a sentence for what could not be brought back, with what to do.
    ``phases`` splits ``seconds``, where objects were collected: ``preparing`` (metadata read and indexes bound, and for
    a refresh the listing that finds what is new), ``listing``, ``collecting``, ``listing again`` and ``commit``.
    """

    root: str
    indexes: tuple[str, ...]
    objects: int
    indexed: int
    removed: int
    left_out: int
    untrusted: int
    rows: int
    metadata_bytes: int
    seconds: float
    version: int
    problems: tuple[str, ...] = ()
    repaired: str = ""
    lost: tuple[str, ...] = ()
    phases: dict[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        notes = "".join(
            f", {count} {what}"
            for count, what in (
                (self.removed, "removed"),
                (self.left_out, "left out (changed meanwhile)"),
                (self.untrusted, "not trusted yet (modified just now)"),
            )
            if count
        )
        return (
            f"{self.root}: {', '.join(self.indexes) or 'no index'}: {self.indexed:,} of {self.objects:,} objects "
            f"indexed{notes}; {self.rows:,} rows, {self.metadata_bytes:,} bytes of metadata, {self.seconds:.1f} s"
            f"{self._said_of_damage()}{self._said_of_problems()}"
        )

    def _repr_html_(self) -> str:
        counted = [
            ("removed", self.removed),
            ("left out, changed meanwhile", self.left_out),
            ("not trusted yet, modified just now", self.untrusted),
        ]
        told = facts(
            [
                ("indexes", ", ".join(self.indexes) or "none"),
                ("objects indexed", f"{count(self.indexed)} of {count(self.objects)}"),
                *((what, count(number) if number else None) for what, number in counted),
                ("rows", count(self.rows)),
                ("metadata", size(self.metadata_bytes)),
                ("took", f"{self.seconds:,.1f} s"),
            ]
        )
        damage = [note(f"Repaired: {self.repaired}")] if self.repaired else []
        damage += [note(f"Lost: {sentence}", warning=True) for sentence in self.lost]
        problems = [folded(f"{len(self.problems):,} not indexed", items(self.problems))] if self.problems else []
        return card("Indexed", told, *damage, *problems, about=self.root)

    def _said_of_damage(self) -> str:
        """Return what was damaged and what is lost, a line each; nothing is left out."""
        repaired = [f"\n  repaired: {self.repaired}"] if self.repaired else []
        return "".join([*repaired, *(f"\n  lost: {sentence}" for sentence in self.lost)])

    def _said_of_problems(self) -> str:
        """Return the first problems, a line each, and the number of the others."""
        shown = [f"\n  not indexed: {problem}" for problem in self.problems[:_SHOWN_PROBLEMS]]
        more = len(self.problems) - len(shown)
        return "".join([*shown, f"\n  not indexed: {more} more"] if more else shown)
