"""The reading environment: what a reader reads depends on the session and the JVM that read, and on when."""
