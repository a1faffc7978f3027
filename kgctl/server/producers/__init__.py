"""Producers that are more than anonymous: idempotent ones and transactions."""
