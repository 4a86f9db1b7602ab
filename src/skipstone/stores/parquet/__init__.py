"""The store that keeps metadata in Parquet files, beside the data or in a folder of its own."""
