"""Other tools' formats: results read for comparison's sake, and runs written for others to read."""
