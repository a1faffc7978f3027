"""Transactional producers."""
