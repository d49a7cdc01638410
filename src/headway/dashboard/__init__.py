"""The pages of `headway serve`: jobs, runs, targets, comparisons.

The package sits above the API and above `operations`: the API is given its routes when the server
is put together and does not know them, so that a page may know what a benchmark is.
"""
