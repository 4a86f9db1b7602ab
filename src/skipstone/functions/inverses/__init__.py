"""Functions whose results bound their arguments, in one table: years, truncated times, texts of dates and numbers."""
