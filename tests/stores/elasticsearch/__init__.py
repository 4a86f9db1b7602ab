"""Tests that need a search server; ``test_elasticsearch.py`` collects them: one worker starts each server once."""
