"""How things are shown to people: one look in notebooks, one spelling of numbers."""
