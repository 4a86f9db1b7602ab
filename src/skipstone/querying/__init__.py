"""Query time: clauses, filters, and the algorithms that merge them (the paper's appendix A)."""
