"""Generators of conversations: one idea per file."""
