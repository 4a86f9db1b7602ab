"""Metadata stores: where metadata is kept, committed and evaluated."""
