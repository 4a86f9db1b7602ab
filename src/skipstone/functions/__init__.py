"""Functions in queries: sets of them to register, what they imply, and what tells two of one name apart."""
