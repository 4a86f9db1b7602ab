"""Columns of log records that no experiment filters by: they give rows the width of the paper's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

KINDS = ("flag", "code", "name", "count", "seconds")
IDENTIFIERS = ("request_id", "trace_id")
NAMED = {
    "code": (
        "http_method", "protocol", "tls_version", "cache_status", "retry_count", "replica", "shard", "zone", "priority",
        "plan", "auth_kind", "encoding", "content_kind", "error_code", "queue", "pool", "api_version", "ip_version",
        "consistency", "partition_kind", "storage_class", "checksum_kind", "upload_part", "lifecycle_rule",
        "region_code",
    ),
    "flag": (
        "is_tls", "is_retry", "is_internal", "is_cached", "is_compressed", "is_throttled", "is_slow", "is_redirected",
        "is_chunked", "is_signed", "is_replicated", "is_sampled", "is_multipart", "is_versioned", "is_public",
    ),
    "name": (
        "node", "region", "data_center", "load_balancer", "cluster", "tls_cipher", "client_city", "client_country",
        "client_network", "release", "feature_set", "team", "rack", "proxy", "cost_center", "origin_host",
        "bucket_policy", "encryption_key", "access_point", "project",
    ),
    "count": (
        "request_bytes", "response_bytes", "header_bytes", "documents_read", "documents_written", "keys_examined",
        "reads", "writes", "bytes_from_disk", "bytes_from_cache", "connections", "queue_length", "client_port",
        "worker", "sequence", "compactions", "object_bytes", "range_begin", "range_end", "part_bytes", "turns",
    ),
    "seconds": (
        "total_seconds", "queue_seconds", "first_byte_seconds", "backend_seconds", "auth_seconds", "disk_seconds",
        "network_seconds", "cpu_seconds", "lookup_seconds", "sign_seconds", "checksum_seconds",
    ),
}  # fmt: skip


def fillers(rng: np.random.Generator, rows: int, count: int) -> dict[str, pa.Array]:
    """Return some of the columns above, two identifiers first and then a kind after the other."""
    columns = {name: identifier(rng, rows, 16) for name in IDENTIFIERS[:count]}
    for name, kind in _in_turn()[: count - len(columns)]:
        columns[name] = _filler(rng, rows, kind)
    return columns


@cache
def _in_turn() -> tuple[tuple[str, str], ...]:
    """Return names and kinds so that any first few of them are of all kinds."""
    longest = max(map(len, NAMED.values()))
    return tuple((NAMED[k][i], k) for i in range(longest) for k in KINDS if i < len(NAMED[k]))


def _filler(rng: np.random.Generator, rows: int, kind: str) -> pa.Array:
    match kind:
        case "flag":
            return pa.array(rng.random(rows) < 0.05)
        case "code":
            return pa.array(np.minimum(rng.geometric(0.5, rows), 12).astype(np.int32))
        case "name":
            return dictionary(np.minimum(rng.geometric(0.08, rows), 60) - 1, _words())
        case "count":
            return pa.array(np.exp(rng.normal(5, 2, rows)).astype(np.int32))
        case _:
            return pa.array(np.round(rng.exponential(0.05, rows), 4).astype(np.float32))


@cache
def _words() -> pa.Array:
    return pa.array([f"name-{number:03d}.example" for number in range(60)])


def dictionary(indices: np.ndarray, values: pa.Array) -> pa.Array:
    """Return a column of few distinct values by their numbers; values that do not occur are left out."""
    used = np.bincount(indices, minlength=len(values)) > 0
    renumbered = (np.cumsum(used) - 1).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(renumbered[indices]), values.filter(pa.array(used)))


def identifier(rng: np.random.Generator, rows: int, length: int) -> pa.Array:
    """Return random hexadecimal text of one length."""
    text = pa.py_buffer(rng.bytes(length * rows // 2 + 1).hex().encode())
    offsets = pa.py_buffer(np.arange(0, length * rows + 1, length, dtype=np.int32))
    return pa.StringArray.from_buffers(rows, offsets, text)
