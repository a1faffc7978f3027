"""Topologies of streams groups on the topics of the cluster: internal topics, numbers of tasks, what is amiss."""
