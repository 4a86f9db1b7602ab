"""The table of what every run has names tests and variants that there are, and guards that every run has."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.every_run import EVERY_RUN, GUARDED, is_long


def test_every_pattern_names_a_variant(request):
    collected = [item.nodeid.partition("[") for item in request.session.items]
    tests = {test for test, *_ in collected}
    for test, patterns in EVERY_RUN.items():
        if test not in tests and len(tests) < len(EVERY_RUN) + 1000:
            continue  # a run of some files only
        variants = [variant.removesuffix("]") for name, _, variant in collected if name == test]
        for pattern in patterns:
            assert any(fnmatchcase(variant, pattern) for variant in variants), f"{test} has no variant {pattern}"
        assert any(is_long(f"{test}[{variant}]") for variant in variants), f"{test} has no variant that is left out"


def test_every_test_that_is_left_out_has_a_guard_that_is_not(request):
    items = {}
    for item in request.session.items:
        items.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, guard in GUARDED.items():
        if len(items) < len(EVERY_RUN) + 1000 and not {test, guard} <= items.keys():
            continue
        assert test in items, f"there is no {test}"
        assert guard in items, f"there is no {guard}"
        kept = any("long" not in item.keywords and not is_long(item.nodeid) for item in items[guard])
        assert kept, f"{guard} is long"
