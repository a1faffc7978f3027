"""Rehearsals: what would Kafka do with this group?"""
