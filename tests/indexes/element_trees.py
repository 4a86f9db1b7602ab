"""Trees of array and map functions as the bridge writes them, their truth for one row, and small universes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from functools import cache

import numpy as np
import pyarrow as pa

from skipstone.expressions import tree
from skipstone.expressions.tree import And, Call, Cast, Column, Expression, IsNaN, IsNotNull, IsNull, Like, Literal, Not
from skipstone.querying.elements import ElementImplication
from skipstone.querying.generate_clause import generate_clause
from skipstone.testing import Outcome, collect, evaluate, physical_type
from skipstone.toolkit.hashing import element_hash_expression, spark_hash

CATALYST = "org.apache.spark.sql.catalyst.expressions."
COMPARISONS = (
    tree.EqualTo, tree.NotEqualTo, tree.EqualNullSafe,
    tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan, tree.GreaterThanOrEqual,
)  # fmt: skip
UNIVERSES = {
    "double": ((None, math.nan, -0.0, 1.0, 2.0), (math.nan, 0.0, 1.0, 1.5)),
    "int": ((None, 1, 2, 5), (1, 2, 3, 5)),
    "string": ((None, "", "a", "ab"), ("", "a", "b", "ab")),
    "boolean": ((None, True, False), (True, False)),
}
_numbers = itertools.count(1)


def call(class_name, name, *arguments, type_="boolean", identity=""):
    return Call(name, arguments, type_, "", CATALYST + class_name, identity)


def array_contains(array, value):
    return call("ArrayContains", "array_contains", array, value)


def arrays_overlap(left, right):
    return call("ArraysOverlap", "arrays_overlap", left, right)


def exists(array, predicate, type_):
    variable = call("NamedLambdaVariable", "namedlambdavariable", type_=type_, identity=str(next(_numbers)))
    function = call("LambdaFunction", "lambdafunction", predicate(variable), variable)
    return call("ArrayExists", "exists", array, function)


def item(array, place, type_):
    return call("GetArrayItem", "getarrayitem", array, Literal(place, "int"), type_=type_)


def map_value(column, key, type_, name="getmapvalue"):
    return call({"getmapvalue": "GetMapValue", "element_at": "ElementAt"}[name], name, column, key, type_=type_)


def map_part(column, of, type_):
    return call({"keys": "MapKeys", "values": "MapValues"}[of], f"map_{of}", column, type_=f"array<{type_}>")


def constant_array(type_, *values):
    return Literal(tuple(values), f"array<{type_}>")


# --- the truth -------------------------------------------------------------------------------------------------------


def truth(node, row):
    """Evaluate a predicate as Spark does: first the functions of arrays and maps, then what is left."""
    return evaluate(_reduced(node, row), row)


def _reduced(node, row):
    match node:
        case Call("exists", (array, Call("lambdafunction", (body, variable)))):
            items = evaluate(_reduced(array, row), row)
            if items is None:
                return Literal(None)
            truths = [truth(_put(body, variable.identity, Literal(i, variable.type)), row) for i in items]
            return Literal(True if True in truths else None if None in truths else False)
        case Call(name, arguments, type_):
            return Literal(FUNCTIONS[name](*(evaluate(_reduced(a, row), row) for a in arguments)), type_)
        case Cast(child):
            return _reduced(child, row)
    return _rebuilt(node, lambda below: _reduced(below, row))


def _put(node, variable, value):
    if isinstance(node, Call) and node.name == "namedlambdavariable":
        return value if node.identity == variable else node
    return _rebuilt(node, lambda below: _put(below, variable, value))


def _rebuilt(node, change):
    changed = {}
    for name in node.__match_args__:
        old = getattr(node, name)
        if isinstance(old, Expression):
            changed[name] = change(old)
        elif isinstance(old, tuple):
            changed[name] = tuple(change(i) if isinstance(i, Expression) else i for i in old)
    return dataclasses.replace(node, **changed) if changed else node


def _equal(one, other):
    return evaluate(tree.EqualTo(Literal(one), Literal(other)), {})


def _contains(items, value):
    if items is None or value is None:
        return None
    found = [_equal(i, value) for i in items]
    return True if True in found else None if None in found else False


def _overlap(left, right):
    if left is None or right is None:
        return None
    if any(_contains(right, i) for i in left if i is not None):
        return True
    return None if left and right and None in [*left, *right] else False


def _item(items, place):
    return items[place] if items is not None and 0 <= place < len(items) else None


def _greatest(items):
    known = [i for i in items or () if i is not None]
    return max(known, key=lambda i: (isinstance(i, float) and math.isnan(i), i)) if known else None


def _map_value(pairs, key):
    return next((v for k, v in pairs if _equal(k, key)), None) if pairs is not None and key is not None else None


FUNCTIONS = {
    "array_contains": _contains,
    "arrays_overlap": _overlap,
    "getarrayitem": _item,
    "array_max": _greatest,
    "getmapvalue": _map_value,
    "element_at": _map_value,
    "map_keys": lambda pairs: None if pairs is None else [k for k, _ in pairs],
    "map_values": lambda pairs: None if pairs is None else [v for _, v in pairs],
    "size": lambda items: -1 if items is None else len(items),
}


# --- universes -------------------------------------------------------------------------------------------------------


def objects_of(rows, type_):
    """Every object of at most two of these rows."""
    chosen = [pair for size in range(3) for pair in itertools.combinations_with_replacement(rows, size)]
    return tuple(pa.record_batch({"c": pa.array(pair, type_)}) for pair in chosen)


@cache
def arrays(type_):
    values, _ = UNIVERSES[type_]
    rows = [None, [], *([v] for v in values), *([a, b] for a, b in itertools.combinations(values, 2)), [None] * 3]
    return objects_of(rows, pa.list_(physical_type(type_)))


@cache
def maps(type_):
    values, _ = UNIVERSES[type_]
    rows = [None, [], *([("k", v)] for v in values), *([("j", v)] for v in values), [("k", values[1]), ("j", None)]]
    return objects_of(rows, pa.map_(pa.string(), physical_type(type_)))


def leaves(subject, type_):
    """Every leaf predicate on a subject."""
    literals = [Literal(v, type_) for v in UNIVERSES[type_][1]]
    found = [make(subject, literal) for make in COMPARISONS for literal in literals]
    found += [Not(tree.EqualNullSafe(subject, literal)) for literal in literals]
    found += [make(subject, tuple(literals[:2])) for make in (tree.In, tree.NotIn)]
    found += [IsNull(subject), IsNotNull(subject), Not(IsNull(subject))]
    found += [tree.EqualNullSafe(subject, Literal(None, type_)), Not(tree.EqualNullSafe(subject, Literal(None, type_)))]
    if type_ == "double":
        found += [IsNaN(subject), Not(IsNaN(subject))]
    if type_ == "boolean":
        found += [subject, Not(subject)]
    if type_ == "string":
        texts = [make(subject, v) for make in (tree.StartsWith, tree.EndsWith, tree.Contains) for v in literals]
        texts += [Like(subject, Literal(p, type_)) for p in ("a_", "%b", "_", "")]
        found += texts + [Not(text) for text in texts]
    return found


def of_array(array, type_):
    """Every kind of predicate that speaks of an array's elements, and some that only seem to."""
    literals = [Literal(v, type_) for v in UNIVERSES[type_][1]]
    found = [array_contains(array, literal) for literal in literals]
    for options in ((), (None,), *((v.value,) for v in literals), (None, literals[0].value), (literals[-1].value,) * 2):
        constant = constant_array(type_, *options)
        found += [arrays_overlap(array, constant), arrays_overlap(constant, array)]
    found.append(arrays_overlap(array, array))
    count = len(leaves(Literal(None), type_))
    inside = [lambda x, n=n: leaves(x, type_)[n] for n in range(count)]
    some = [inside[n] for n in (0, 1, count - 1, count - 2)]
    inside += [lambda x, p=p, q=q: And((p(x), q(x))) for p, q in itertools.combinations(some, 2)]
    inside += [lambda x, p=p, q=q: tree.Or((p(x), Not(q(x)))) for p, q in itertools.permutations(some, 2)]
    inside += [lambda x, p=p: exists(array, lambda y: And((tree.EqualTo(x, y), p(y))), type_) for p in some]
    inside += [lambda x, p=p: exists(array, lambda y: tree.Or((p(x), IsNull(y))), type_) for p in some]
    found += [exists(array, predicate, type_) for predicate in inside]
    found += [tree.Or((found[0], tree.EqualTo(call("Size", "size", array, type_="int"), Literal(0, "int"))))]
    return [*found, *map(Not, found), *(tree.Or((p, found[-2])) for p in found[:4])]


@cache
def array_predicates(type_):
    column = Column("c", f"array<{type_}>")
    found = of_array(column, type_)
    for place in (0, 1, 7):
        found += leaves(item(column, place, type_), type_)
    found += leaves(call("ArrayMax", "array_max", column, type_=type_), type_)
    whole = [IsNull(column), IsNotNull(column)]
    values = UNIVERSES[type_][1]
    whole += [tree.EqualTo(column, constant_array(type_, v)) for v in values]
    return (*found, *whole, *(And((whole[1], p)) for p in found[:5]))


@cache
def map_predicates(type_):
    column = Column("c", f"map<string,{type_}>")
    found = [*of_array(map_part(column, "values", type_), type_)]
    keys = map_part(column, "keys", "string")
    found += [array_contains(keys, Literal(k, "string")) for k in ("k", "j", "no")]
    found += [exists(keys, lambda x: Like(x, Literal("_", "string")), "string"), *map(Not, found[-3:])]
    for name, key in itertools.product(("getmapvalue", "element_at"), ("k", "j", "no")):
        found += leaves(map_value(column, Literal(key, "string"), type_, name), type_)
    same = array_contains(map_part(column, "values", type_), Literal(UNIVERSES[type_][1][1], type_))
    return (*found, IsNull(column), IsNotNull(column), *(tree.Or((p, same)) for p in found[-9:]))


def computed(column, of, type_):
    """How to compute the inputs of an index on elements."""
    source = f"`{column}`" if of is None else f"map_{of}(`{column}`)"
    inner = physical_type("string" if of == "keys" else type_)

    def parts(rows):
        values = rows.column(column).to_pylist()
        return values if of is None else [FUNCTIONS[f"map_{of}"](value) for value in values]

    def hashes(rows):
        kind = "string" if of == "keys" else type_
        hashed = [v and [None if i is None else spark_hash(i, kind) for i in v] for v in parts(rows)]
        return pa.array(hashed, pa.list_(pa.int64()))

    return {source: lambda rows: pa.array(parts(rows), pa.list_(inner)), element_hash_expression(source): hashes}


def describe(index, objects, type_, *, spark_type, **collecting):
    return collect(index, objects, {"c": spark_type}, inputs=computed("c", index.of, type_), **collecting)


def kept(index, predicate, metadata):
    """Return which objects would be read; the clause must say what it reads."""
    labelled = generate_clause(predicate, index.filters(), (ElementImplication(),))
    assert not labelled.problems, labelled.problems
    if labelled.clause is None:
        return np.ones(len(metadata), np.bool_)
    assert {name for _, name in labelled.clause.requires} <= metadata.fields.keys()
    return labelled.clause.might_match(metadata).fill_null(True).to_numpy(zero_copy_only=False)


def check(index, predicates, objects, metadata):
    """Hold an index against the truth, row by row."""
    rows_of = [rows.to_pylist() for rows in objects]
    relevant_count = skipped = 0
    for predicate in predicates:
        known = {}
        read = kept(index, predicate, metadata)
        for rows, is_read in zip(rows_of, read, strict=True):
            relevant = False
            for row in rows:
                key = repr(row)
                if key not in known:
                    known[key] = truth(predicate, row) is True
                relevant = relevant or known[key]
            assert is_read or not relevant, f"{index.name} skips an object that has a row with {predicate}: {rows}"
            relevant_count += relevant
            skipped += not is_read
    return Outcome(len(predicates) * len(objects), relevant_count, skipped)
