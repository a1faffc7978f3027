"""``simulate assign``: groups from files and elsewhere, the answers of assignors, and what to think of them."""
