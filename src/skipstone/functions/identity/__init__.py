"""The identity of a user's function: its bytes, and the modules that they refer to."""
