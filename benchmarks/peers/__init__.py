"""What people use today: DuckDB and Polars in this process, Delta and Iceberg in a Spark of theirs."""
