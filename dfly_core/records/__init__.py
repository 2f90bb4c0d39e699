"""Plain facts that cross every border; standard library only."""
