"""Spark, the only engine so far: sessions, the bridge into the JVM, index jobs, what workers run."""
