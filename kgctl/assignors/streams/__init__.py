"""The leader's side of a Kafka Streams application in a classic group: who runs which task, told in user data (KIP-441)."""
