"""Comparisons: whether B differs from A, by how much, and how surely.

`compare_paths` is the whole of it for two runs; `compare_runs` where both are run directories.
"""

from headway.compare.comparison import compare_runs
from headway.compare.foreign import compare_paths
from headway.compare.model import Comparison, Refusal
from headway.compare.options import CompareOptions
from headway.compare.words import Rules

__all__ = ["CompareOptions", "Comparison", "Refusal", "Rules", "compare_paths", "compare_runs"]
