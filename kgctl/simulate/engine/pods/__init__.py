"""Pods: processes that boot, run a consumer, stop, crash, freeze, and are started again."""
