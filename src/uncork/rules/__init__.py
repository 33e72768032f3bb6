"""The rules: each a predicate and two pages."""
