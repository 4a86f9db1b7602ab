"""The Elasticsearch / OpenSearch metadata store: plain HTTP and JSON, so that both serve (docs/elasticsearch.md)."""
