"""What was skipped, by which clause, and why something was not used."""
