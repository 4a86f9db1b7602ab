"""The bridge: a session extension in Scala, compiled with the compiler that ships inside pyspark, and its builder."""
