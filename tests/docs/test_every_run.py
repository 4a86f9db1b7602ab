"""The table of variants that every run has names tests and variants that there are."""

from __future__ import annotations

from fnmatch import fnmatchcase

from tests.every_run import EVERY_RUN, is_long


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
