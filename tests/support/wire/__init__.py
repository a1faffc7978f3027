"""Speaking Kafka's protocol by hand: raw requests, random messages, a member of a group step by step."""
