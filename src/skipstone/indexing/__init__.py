"""Index time: what an index and its metadata are, and the job that collects them."""
