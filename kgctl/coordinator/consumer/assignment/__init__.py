"""From subscriptions to partitions: what a group subscribes to, its target assignment, and each member's way towards its own."""
