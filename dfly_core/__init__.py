"""The DFly model, its conversion and its speculative engine; imports nothing."""

__version__ = "0.1.0"
