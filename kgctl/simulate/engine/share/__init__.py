"""Share groups in a run (KIP-932): what brokers do for them, and the consumers that fetch and acknowledge."""
