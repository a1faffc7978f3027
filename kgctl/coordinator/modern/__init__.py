"""What groups of the consumer protocol and share groups have in common (Kafka: ModernGroup)."""
