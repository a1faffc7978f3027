"""A scenario played in real time: real clients in processes of their own, against a cluster, measured as the simulation is."""
