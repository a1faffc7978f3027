"""The algorithms behind both sticky assignors: whose claim counts, the constrained and the general assignment."""
