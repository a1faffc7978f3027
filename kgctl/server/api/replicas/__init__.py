"""Leaders and replicas, as far as brokers of one replica a partition have them."""
