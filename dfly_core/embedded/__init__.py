"""The pair that ships with the package: target/, drafter/, examples.json."""
