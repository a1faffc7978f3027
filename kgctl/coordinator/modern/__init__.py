"""What groups of the consumer protocol, share groups and streams groups have in common (Kafka: ModernGroup)."""
