"""What functions of times and texts imply, against a reference at every odd moment of zones made by hand."""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.expressions.three_valued import evaluate
from tests.functions.inverses import reference as ref

from skipstone import registry
from skipstone.expressions.normalize import NEVER, normalize
from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Like,
    Literal,
    Not,
    NotEqualTo,
    Or,
    StartsWith,
)
from skipstone.functions.inverses import calendar, ordering, parts, predicates, times, zones
from skipstone.functions.inverses.implication import InverseImplication
from skipstone.functions.inverses.inverse import monotone
from skipstone.querying.implication import with_implied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skipstone.expressions.tree import Expression

CATALYST = "org.apache.spark.sql.catalyst.expressions."
TS, N, D = Column("ts", "timestamp"), Column("n", "timestamp_ntz"), Column("d", "date")
ORDERS = {
    EqualTo: operator.eq,
    NotEqualTo: operator.ne,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
}


def call(name: str, *arguments: Expression, type_: str = "int", zone: str = "") -> Call:
    return Call(name.lower(), arguments, type_, class_name=CATALYST + name, identity=zone)


def text(value: str) -> Literal:
    return Literal(value, "string")


@dataclass(frozen=True)
class Function:
    """A function of a timestamp: as a tree, and as the reference has it."""

    name: str
    tree: Callable[[str], Expression]
    value: Callable[[str, int], Any]
    type: str = "int"


def _date(zone: str) -> Cast:
    return Cast(TS, "date", "LEGACY", zone)


FUNCTIONS = (
    Function("date", _date, lambda z, x: ref.local(z, x) // ref.DAY, "date"),
    Function("year", lambda z: call("Year", _date(z)), lambda z, x: ref.day_of(ref.local(z, x)).year),
    Function(
        "year of week",
        lambda z: call("YearOfWeek", _date(z)),
        lambda z, x: ref.day_of(ref.local(z, x)).isocalendar().year,
    ),
    *(
        Function(
            f"trunc {unit}",
            lambda z, unit=unit: call("TruncDate", _date(z), text(unit.lower()), type_="date"),
            lambda z, x, unit=unit: ref.days(ref.start(ref.day_of(ref.local(z, x)), unit)),
            "date",
        )
        for unit in ("WEEK", "MONTH", "QUARTER", "YEAR")
    ),
    *(
        Function(
            f"date_trunc {unit}",
            lambda z, unit=unit: call("TruncTimestamp", text(unit), TS, type_="timestamp", zone=z),
            lambda z, x, unit=unit: ref.date_trunc(z, unit, x),
            "timestamp",
        )
        for unit in ("MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
    ),
    Function("ntz", lambda z: Cast(TS, "timestamp_ntz", "LEGACY", z), ref.local, "timestamp_ntz"),
    Function("text", lambda z: Cast(TS, "string", "LEGACY", z), ref.text, "string"),
    Function(
        "month",
        lambda z: call("DateFormatClass", TS, text("yyyy-MM"), type_="string", zone=z),
        lambda z, x: ref.text(z, x)[:7],
        "string",
    ),
    Function(
        "minute",
        lambda z: call("DateFormatClass", TS, text("yyyy/MM/dd HH:mm"), type_="string", zone=z),
        lambda z, x: ref.text(z, x)[:16].replace("-", "/"),
        "string",
    ),
    Function(
        "beginning",
        lambda z: call(
            "Substring", Cast(TS, "string", "LEGACY", z), Literal(1, "int"), Literal(13, "int"), type_="string"
        ),
        lambda z, x: ref.text(z, x)[:13],
        "string",
    ),
    Function(
        "seconds",
        lambda z: call("UnixTimestamp", TS, text("x"), type_="bigint", zone=z),
        lambda _, x: x // 10**6,
        "bigint",
    ),
)

_IMPLICATION = InverseImplication()


def violations(function: Function, zone: str, draws: int = 5) -> Iterator[str]:
    """Find moments that satisfy a predicate and not what it is said to imply."""
    chosen = random.Random(f"{function.name} {zone}")
    instants = ref.moments(zone)
    values = {x: function.value(zone, x) for x in instants}
    for order, holds in ORDERS.items():
        for bound in chosen.sample(sorted(set(values.values())), min(draws, len(set(values.values())))):
            leaf = order(function.tree(zone), Literal(bound, function.type))
            with ref.surroundings().hold():
                said = _IMPLICATION.implied(leaf)
            assert said is not None, leaf
            for x, value in values.items():
                if holds(value, bound) and evaluate(said, {"ts": x}) is not True:
                    yield f"{leaf} holds at {x} in {zone}, and not {said}"


@pytest.mark.parametrize("zone", ref.ZONES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_no_moment_that_satisfies_a_predicate_is_left_out(function, zone):
    assert not [*violations(function, zone)][:3]


@pytest.mark.parametrize("zone", ref.ZONES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_ranges_are_as_narrow_as_the_zone_lets_them_be(function, zone):
    """An equality leaves out all moments two days from every one that satisfies it."""
    instants = ref.moments(zone)
    values = {x: function.value(zone, x) for x in instants}
    middle = values[instants[len(instants) // 2]]
    with ref.surroundings().hold():
        said = _IMPLICATION.implied(EqualTo(function.tree(zone), Literal(middle, function.type)))
    near = [x for x, value in values.items() if value == middle]
    for x in (min(near) - 370 * ref.DAY, max(near) + 370 * ref.DAY):
        assert evaluate(said, {"ts": x}) is False
    if function.name in ("date", "text", "ntz", "minute", "beginning"):
        for x in (min(near) - 2 * ref.DAY, max(near) + 2 * ref.DAY):
            assert evaluate(said, {"ts": x}) is False


LOCAL = (
    ("timestamp of a date", lambda z: Cast(D, "timestamp", "LEGACY", z), "d", ref.DAY, True),
    ("timestamp of a local time", lambda z: Cast(N, "timestamp", "LEGACY", z), "n", 1, False),
)


@pytest.mark.parametrize("zone", ref.ZONES)
@pytest.mark.parametrize("case", LOCAL, ids=lambda case: case[0])
def test_local_times_become_instants(case, zone):
    _, tree, name, unit, start_of_day = case
    locals_ = sorted({ref.local(zone, x) // unit for x in ref.moments(zone)} | {x // unit for x in ref.moments(zone)})
    values = {v: ref.resolved(zone, v * unit, start_of_day=start_of_day) for v in locals_}
    for order, holds in ORDERS.items():
        for bound in [*values.values()][:: max(len(values) // 25, 1)]:
            leaf = order(tree(zone), Literal(bound, "timestamp"))
            with ref.surroundings().hold():
                said = _IMPLICATION.implied(leaf)
            lost = [v for v, value in values.items() if holds(value, bound) and evaluate(said, {name: v}) is not True]
            assert not lost, f"{leaf}: {said}: {lost[:3]}"


def _parts(zone: str) -> list[tuple[Expression, Callable[[int], int], int]]:
    return [
        (call("Month", _date(zone)), lambda x: ref.day_of(ref.local(zone, x)).month, 12),
        (call("Quarter", _date(zone)), lambda x: (ref.day_of(ref.local(zone, x)).month + 2) // 3, 4),
        (call("DayOfYear", _date(zone)), lambda x: ref.day_of(ref.local(zone, x)).timetuple().tm_yday, 366),
        (call("WeekOfYear", _date(zone)), lambda x: ref.day_of(ref.local(zone, x)).isocalendar().week, 53),
        (call("DayOfMonth", _date(zone)), lambda x: ref.day_of(ref.local(zone, x)).day, 31),
        (call("DayOfWeek", _date(zone)), lambda x: ref.day_of(ref.local(zone, x)).isoweekday() % 7 + 1, 7),
        (call("WeekDay", _date(zone)), lambda x: ref.day_of(ref.local(zone, x)).weekday(), 6),
        (call("Hour", TS, zone=zone), lambda x: ref.local(zone, x) % ref.DAY // ref.HOUR, 23),
        (call("Minute", TS, zone=zone), lambda x: ref.local(zone, x) // 60_000_000 % 60, 59),
    ]


def part_violations(zone: str) -> tuple[list[str], int]:
    """Find moments in a range that satisfy a predicate and not what it implies; and count what is left out."""
    found, left_out = [], 0
    instants = ref.moments(zone)
    for low in (instants[150], instants[-250]):
        high = low + 3 * ref.DAY
        inside = [x for x in instants if low <= x < high]
        bounds = (GreaterThanOrEqual(TS, Literal(low, "timestamp")), LessThan(TS, Literal(high, "timestamp")))
        for tree, value, most in _parts(zone):
            values = {x: value(x) for x in inside}
            for wanted in sorted({*values.values(), 0, most, most + 1})[::6]:
                for order, holds in ORDERS.items():
                    with ref.surroundings().hold():
                        said = _IMPLICATION.implied_together([order(tree, Literal(wanted, "int")), *bounds])
                    if not said:
                        continue
                    for x, here in values.items():
                        true = evaluate(said[0], {"ts": x}) is True
                        left_out += not true
                        if holds(here, wanted) and not true:
                            found.append(f"{order.__name__} {tree} {wanted} at {x} in {zone}: {said[0]}")
    return found, left_out


@pytest.mark.parametrize("zone", ref.ZONES)
def test_parts_within_a_range(zone):
    found, left_out = part_violations(zone)
    assert not found[:3]
    assert left_out > 500


# --- mutations: each rule broken on purpose ---------------------------------------------------------------------------


def _everywhere(patch: pytest.MonkeyPatch, name: str, new: Any) -> None:
    for module in (calendar, ordering, parts, predicates, times, zones):
        if hasattr(module, name):
            patch.setattr(module, name, new)


def _one_offset(self: Any, local: int) -> int:
    """Take the offset that holds when the local time is taken for an instant: the fold and the gap are ignored."""
    return local - self.offsets[zones.bisect_right(self.starts, local) - 1]


MUTATIONS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "fold ignored": lambda p: p.setattr(zones.ZoneRules, "earliest", _one_offset),
    "gap ignored": lambda p: p.setattr(zones.ZoneRules, "latest", _one_offset),
    "the least offset alone": lambda p: p.setattr(
        zones.ZoneRules, "offsets_near", lambda self, x, near=zones.ZoneRules.offsets_near: (near(self, x)[1],) * 2
    ),
    "a day too late": lambda p: _everywhere(p, "first_of_month", lambda index, f=calendar.first_of_month: f(index) + 1),
    "a day too early": lambda p: p.setattr(
        times, "_times", lambda interval, unit: tuple(None if b is None else b * unit - ref.DAY for b in interval)
    ),
    "< for <=": lambda p: _everywhere(p, "successor", lambda value, _: value),
    "the next period": lambda p: _everywhere(p, "next_start", lambda periods, value: periods[1](periods[0](value) + 1)),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_rule_is_noticed(mutation, monkeypatch):
    MUTATIONS[mutation](monkeypatch)
    assert any(next(violations(function, zone), None) for zone in ref.ZONES for function in FUNCTIONS)


def test_a_broken_part_is_noticed(monkeypatch):
    monkeypatch.setattr(parts, "local_of", lambda _, instants: instants)
    assert any(part_violations(zone)[0] for zone in ref.ZONES)


# --- texts and numbers ------------------------------------------------------------------------------------------------


def said(leaf: Expression) -> str:
    found = _IMPLICATION.implied(leaf)
    return "nothing" if found is None else str(normalize(found))


BIG, WHOLE = Column("id", "bigint"), Column("i", "int")


@pytest.mark.parametrize(
    ("leaf", "expected"),
    [
        (EqualTo(Cast(BIG, "string"), text("7")), "id = 7"),
        (EqualTo(Cast(BIG, "string"), text("-7")), "id = -7"),
        (EqualTo(Cast(BIG, "string"), text("07")), "False"),
        (EqualTo(Cast(BIG, "string"), text("-0")), "False"),
        (EqualTo(Cast(BIG, "string"), text("7 ")), "False"),
        (EqualTo(Cast(WHOLE, "string"), text("3000000000")), "False"),
        (In(Cast(BIG, "string"), (text("7"), text("x"), text("12"))), "id IN (7, 12)"),
        (LessThan(Cast(BIG, "string"), text("7")), "nothing"),
        (NotEqualTo(Cast(BIG, "string"), text("7")), "nothing"),
        (StartsWith(Cast(Column("t", "tinyint"), "string"), text("12")), "(t = 12) OR (t >= 120)"),
        (EqualTo(Cast(Column("c", "decimal(10,2)"), "string"), text("1.50")), "c = 1.50"),
        (EqualTo(Cast(Column("c", "decimal(10,2)"), "string"), text("x")), "nothing"),
        (EqualTo(Cast(Column("f", "double"), "string"), text("1.0E21")), "f = 1e+21"),
        (EqualTo(Cast(Column("f", "double"), "string"), text("NaN")), "nothing"),
        (EqualTo(Cast(Column("f", "float"), "string"), text("1.5")), "nothing"),
        (Like(Cast(D, "string"), text("2026-01-1_")), "(d >= date '2026-01-10') AND (d < date '2026-01-20')"),
        (LessThan(Cast(D, "string"), text("2026")), "(d < date '2026-01-01') OR (d >= 2932897)"),
        (EqualTo(Cast(D, "string"), text("+12000-01-01")), "(d < -719528) OR (d >= 2932897)"),
        (EqualTo(Cast(D, "string"), text("2026-02-30")), "False"),
        (
            StartsWith(call("Substring", Column("s", "string"), Literal(2, "int"), Literal(3, "int")), text("a")),
            "nothing",
        ),
        (
            EqualTo(
                call("Substring", Column("s", "string"), Literal(1, "int"), Literal(2, "int"), type_="string"),
                text("ab"),
            ),
            "startswith(s, 'ab')",
        ),
        (EqualTo(call("Year", D), Literal(2026, "int")), "(d >= date '2026-01-01') AND (d < date '2027-01-01')"),
        (EqualTo(call("Year", D), Literal(-1, "int")), "(d >= -719893) AND (d < -719528)"),
        (EqualTo(call("Year", D), Literal(2**31 - 1, "int")), "False"),
        (EqualTo(call("DateAdd", D, Literal(-1, "int"), type_="date"), Literal(2**31 - 1, "date")), "d < -2147483647"),
        (EqualTo(call("TruncDate", D, text("day"), type_="date"), Literal(0, "date")), "nothing"),
        (EqualTo(call("Month", D), Literal(3, "int")), "nothing"),
        (EqualTo(call("DateFormatClass", TS, text("dd-MM-yyyy"), type_="string", zone="UTC"), text("x")), "nothing"),
        (EqualTo(call("DateFormatClass", TS, text("yyyy-dd"), type_="string", zone="UTC"), text("x")), "nothing"),
        (EqualTo(call("DateFormatClass", TS, text("YYYY-MM"), type_="string", zone="UTC"), text("x")), "nothing"),
        (EqualTo(call("DateFormatClass", TS, text("yyyy-MMM"), type_="string", zone="UTC"), text("x")), "nothing"),
        (EqualTo(call("DateFormatClass", TS, text("yy-MM"), type_="string", zone="UTC"), text("x")), "nothing"),
    ],
    ids=str,
)
def test_what_is_said(leaf, expected):
    assert said(leaf) == expected


def test_the_old_formatter_of_spark_is_not_known():
    leaf = EqualTo(call("DateFormatClass", TS, text("yyyy"), type_="string", zone="UTC"), text("2026"))
    assert said(leaf) != "nothing"
    with zones.Surroundings(old_formatter=True).hold() as looked_at:
        assert said(leaf) == "nothing"
        assert said(EqualTo(Cast(D, "string"), text("2026-01-01"))) == "nothing"
        assert said(EqualTo(Cast(TS, "string", "LEGACY", "UTC"), text("2026-01-01 00:00:00"))) != "nothing"
    assert looked_at.asked_formatter


def test_a_zone_without_rules_is_eighteen_hours_wide():
    leaf = EqualTo(call("Year", Cast(TS, "date", "LEGACY", "Europe/Nowhere")), Literal(2026, "int"))
    assert said(leaf) == "(ts >= timestamp '2025-12-31 06:00:00Z') AND (ts < timestamp '2027-01-01 18:00:00Z')"


def test_a_users_function_of_the_same_name_is_not_known():
    leaf = EqualTo(Call("year", (D,), "int", "python", CATALYST + "Year"), Literal(2026, "int"))
    assert said(leaf) == "nothing"


def test_a_fraction_ends_where_its_zeros_begin():
    leaf = GreaterThan(Cast(TS, "string", "LEGACY", "UTC"), text("2026-01-01 00:00:00.45"))
    found = _IMPLICATION.implied(leaf)
    start = 1_767_225_600_000_000
    assert evaluate(found, {"ts": start + 500_000}) is True
    assert evaluate(found, {"ts": start + 450_000}) is False


def test_plug_ins_state_their_own(monkeypatch):
    monkeypatch.setattr(registry, "_inverses", {})
    tens = Call("tens", (WHOLE,), "int", class_name="com.example.Tens")
    leaf = LessThanOrEqual(tens, Literal(3, "int"))
    assert said(leaf) == "nothing"
    registry.register_inverse("com.example.Tens", monotone(lambda bound: bound * 10))
    assert said(leaf) == "i < 40"


def test_terms_of_an_and_are_asked_together():
    year = EqualTo(call("Year", D), Literal(2026, "int"))
    march = EqualTo(call("Month", D), Literal(3, "int"))
    errors: list[Any] = []
    tree, implied = with_implied(normalize(And((year, march))), [_IMPLICATION], lambda *e: errors.append(e))
    assert not errors
    assert [str(term) for term in implied[id(tree.terms[3])]] == ["d >= date '2026-03-01'", "d < date '2026-04-01'"]
    tree, implied = with_implied(normalize(Or((year, march))), [_IMPLICATION], lambda *e: errors.append(e))
    assert len(implied) == 1
    never = with_implied(normalize(And((year, EqualTo(call("Month", D), Literal(13, "int"))))), [_IMPLICATION], print)[
        0
    ]
    assert NEVER in never.terms


def test_a_leaf_that_stands_in_several_places_gets_nothing_from_its_neighbours():
    march = Not(Not(EqualTo(call("Month", D), Literal(3, "int")))).child.child
    inside = And((EqualTo(call("Year", D), Literal(2026, "int")), march))
    tree = And((Or((inside, EqualTo(BIG, Literal(1, "bigint")))), Or((march, EqualTo(BIG, Literal(2, "bigint"))))))
    _, implied = with_implied(tree, [_IMPLICATION], print)
    assert id(march) not in implied


@pytest.mark.parametrize(
    ("leaf", "hint"),
    [
        (EqualTo(call("Month", D), Literal(3, "int")), "say which years: add AND year(d) = …, or a range of d"),
        (EqualTo(call("Hour", TS, zone="UTC"), Literal(3, "int")), "say which days: add a range of ts"),
        (EqualTo(Column("x", "int"), Literal(3, "int")), None),
        (EqualTo(Call("f", (D,), "int", "python"), Literal(3, "int")), None),
    ],
)
def test_hints(leaf, hint):
    assert _IMPLICATION.hint(leaf) == hint


def test_the_calendar_goes_on_for_ever():
    for day in (*range(-800_000, 800_000, 997), 2**31 - 1, -(2**31)):
        index = calendar.month_index(day)
        assert calendar.first_of_month(index) <= day < calendar.first_of_month(index + 1)
    for ordinal in range(1, 3_652_059, 1009):
        day = ordinal - 719_163
        python = ref.day_of(day * ref.DAY)
        assert divmod(calendar.month_index(day), 12) == (python.year, python.month - 1)


def test_decimals_step_by_their_scale():
    assert ordering.successor(Decimal("1.5"), "decimal(38,18)") == Decimal("1.500000000000000001")
