"""Expressions: numbers with units, metrics with filters, arithmetic, comparisons, and, or, not. Never evaluated as code."""
