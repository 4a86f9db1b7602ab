"""User agents: of programs as their documentation writes them, of browsers and robots from lists of seen ones."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

# The usual clients of a database and of an object store; {} is a version.
DATABASE_CLIENTS = (
    "nano/{} (Node.js v18.19.0)", "nodejs-cloudant/{} (Node.js v16.20.2)", "java-cloudant/{}",
    "python-cloudant/{}/Python/3.8.10", "PouchDB/{}", "CouchDB-Replicator/{}", "python-requests/{}", "okhttp/{}",
    "axios/{}", "Go-http-client/{}", "Apache-HttpClient/{} (Java/17.0.10)", "curl/{}", "node-fetch/{}",
    "PostmanRuntime/{}", "Faraday v{}", "rest-client/{} (linux x86_64) ruby/3.1.4p223",
)  # fmt: skip
STORAGE_CLIENTS = (
    "aws-sdk-java/{} Linux/5.10.0 OpenJDK_64-Bit_Server_VM/17.0.10+7 java/17.0.10",
    "Boto3/{} md/Botocore#1.34.69 ua/2.0 os/linux#5.10.0 md/arch#x86_64 lang/python#3.11.6",
    "aws-cli/{} Python/3.11.8 Linux/5.10.0 exe/x86_64", "Hadoop 3.3.4, aws-sdk-java/{} Linux/5.10.0",
    "rclone/v{}", "MinIO (linux; amd64) minio-go/v{}", "S3Browser/{} (https://s3browser.com)", "s3fs/{}",
    "Cyberduck/{} (Mac OS X/14.4) (aarch64)", "python-requests/{}", "curl/{}", "Wget/{}", "Go-http-client/{}",
    "okhttp/{}", "libcloud/{}", "Apache-HttpClient/{} (Java/17.0.10)",
)  # fmt: skip
VERSIONS = 6


def clients(templates: tuple[str, ...]) -> list[str]:
    """Return each program in a few versions, the newest of all programs first."""
    return [t.format(f"{12 - v}.{(7 * n + 3 * v) % 20}.{v}") for v in range(VERSIONS) for n, t in enumerate(templates)]


@cache
def browsers() -> tuple[str, ...]:
    """Return the browsers that fake-useragent has seen, the most frequent first."""
    lines = (files("fake_useragent") / "data" / "browsers.jsonl").read_text(encoding="utf-8").splitlines()
    seen: dict[str, float] = {}
    for entry in map(json.loads, lines):
        seen[entry["useragent"]] = seen.get(entry["useragent"], 0.0) + entry["percent"]
    return tuple(sorted(seen, key=lambda agent: (-seen[agent], agent)))


@cache
def robots() -> tuple[str, ...]:
    """Return the robots that crawler-user-agents has seen."""
    entries = json.loads((files("crawleruseragents") / "crawler-user-agents.json").read_text(encoding="utf-8"))
    return tuple(sorted({agent for entry in entries for agent in entry["instances"] if agent}))
