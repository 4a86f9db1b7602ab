"""What is where on the documentation site: the order of its pages, and the names of the API reference.

Pages are named as in the repository. What lies in ``docs/`` and is not named here comes last among the how-to pages.
"""

from __future__ import annotations

__all__ = ["API", "NAVIGATION", "REST", "Api", "Entry"]

Entry = str | tuple[str, "str | list[Entry]"]
"""A page, which says its own title; or a title, with a page or with entries."""

NAVIGATION: list[Entry] = [
    (
        "First hour",
        [
            ("Skipstone", "README.md"),
            "docs/installing.md",
            (
                "Tutorials",
                [
                    "docs/tutorials/README.md",
                    "docs/tutorials/logs.md",
                    "docs/tutorials/geospatial.md",
                    "docs/tutorials/functions.md",
                    "docs/tutorials/your_own_index.md",
                ],
            ),
            "docs/when.md",
            "docs/glossary.md",
        ],
    ),
    (
        "How-to",
        [
            "docs/sql.md",
            "docs/cli.md",
            "docs/tables.md",
            "docs/servers.md",
            "docs/storage.md",
            "docs/elasticsearch.md",
            "docs/security.md",
            "docs/indicators.md",
            "docs/report.md",
            "docs/functions.md",
            "docs/geo.md",
            "docs/plugins.md",
            "docs/stores.md",
            "docs/engines.md",
            ("Examples", "examples"),
        ],
    ),
    (
        "Reference",
        [
            ("Index types", ["docs/indexes/README.md", "docs/indexes/*.md"]),
            "docs/predicates.md",
            ("API", ["api/*"]),
            "docs/performance.md",
            ("Experiments", ["docs/experiments.md", "docs/experiments-storage.md", "docs/datasets.md"]),
            "CHANGELOG.md",
        ],
    ),
    (
        "Internals",
        [
            "docs/architecture.md",
            "docs/soundness.md",
            "docs/reliability.md",
            "docs/format.md",
            ("Decisions", ["docs/adr/*.md"]),
            "CONTRIBUTING.md",
        ],
    ),
]

REST = "How-to"
"""The section that takes the pages of ``docs/`` which are not named."""

Api = dict[str, tuple[str, str, tuple[str, ...]]]
"""By page: its title, what it is about, and the names that it documents."""

API: Api = {
    "session": (
        "Sessions and statistics",
        "What a program calls beside a dataset's own methods.",
        (
            "skipstone.configure",
            "skipstone.last_query",
            "skipstone.skipping_stats",
            "skipstone.engines.spark.scan_stats.ScanStats",
            "skipstone.engines.spark.scan_stats.ObjectCounts",
            "skipstone.udf_filter",
            "skipstone.state_version",
        ),
    ),
    "dataset": (
        "Dataset",
        "The handle on one dataset, and what its methods give.",
        (
            "skipstone.Dataset",
            "skipstone.reporting.explain.Explanation",
            "skipstone.reporting.indicators.Indicators",
            "skipstone.reporting.indicators.WorkloadIndicators",
        ),
    ),
    "indexes": (
        "Index types",
        "What `create_indexes` takes. Each has [a page](../docs/indexes/README.md): what it stores, when to choose it.",
        (
            "skipstone.MinMaxIndex",
            "skipstone.ValueListIndex",
            "skipstone.BloomFilterIndex",
            "skipstone.HybridIndex",
            "skipstone.GapListIndex",
            "skipstone.PrefixIndex",
            "skipstone.SuffixIndex",
            "skipstone.GeoBoxIndex",
            "skipstone.FormattedIndex",
            "skipstone.MetricDistanceIndex",
            "skipstone.FeatureIndex",
        ),
    ),
    "functions": (
        "Function sets",
        "Functions that queries use, registered by one call each.",
        ("skipstone.geo", "skipstone.agents", "skipstone.distances"),
    ),
    "errors": ("Errors", "All derive from one class.", ("skipstone.errors",)),
    "extending": (
        "Extending",
        "The contracts of index types, implications, stores and engines ([walk-through](../docs/plugins.md)).",
        (
            "skipstone.Index",
            "skipstone.MetadataType",
            "skipstone.Clause",
            "skipstone.Filter",
            "skipstone.Implication",
            "skipstone.stores.metadata_store.MetadataStore",
            "skipstone.indexing.source.Source",
            "skipstone.registry",
        ),
    ),
    "toolkit": ("Toolkit", "What index types are made of.", ("skipstone.toolkit",)),
    "expressions": (
        "Expressions",
        "The Expression Tree that filters see.",
        ("skipstone.expressions.tree", "skipstone.expressions.ranges"),
    ),
    "testing": ("Testing", "For authors of index types and stores.", ("skipstone.testing",)),
}
