import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.expressions import deep_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.sampled_from((None, 1)))
def test_reading_step_by_step_gives_what_python_gives(value, indent):
    text = json.dumps(value, indent=indent)
    assert deep_json.loads(text) == value
    assert deep_json._read_stepwise(f" {text}\n") == value


def test_depth_does_not_matter():
    depth = 50_000
    node = deep_json.loads('{"c":[' * depth + "1" + "]}" * depth)
    for _ in range(depth):
        (node,) = node["c"]
    assert node == 1


@pytest.mark.parametrize("text", ["", "[", "[1", "[1 2]", '{"a" 1}', '{"a":}', "[1]]", "[1}", "{1]", '{"a":1', "[}"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(json.JSONDecodeError):
        deep_json._read_stepwise(text)
