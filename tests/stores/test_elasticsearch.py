"""The Elasticsearch / OpenSearch store on real servers; all such tests are here, so that one worker runs them."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.stores.test_contract", "tests.stores.elasticsearch")

from tests.stores.elasticsearch.contract import *  # noqa: E402, F403
from tests.stores.elasticsearch.faults import *  # noqa: E402, F403
from tests.stores.elasticsearch.in_spark import *  # noqa: E402, F403
from tests.stores.elasticsearch.support import prefix, servers, shared_prefix, url  # noqa: E402, F401
from tests.stores.elasticsearch.translation import *  # noqa: E402, F403

pytestmark = pytest.mark.slow
