"""`kgctl serve`: the coordinator without a broker, and what an operator asks one that runs."""
