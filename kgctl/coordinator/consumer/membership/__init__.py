"""Members come, stay and go: ConsumerGroupHeartbeat, fencing, timers."""
