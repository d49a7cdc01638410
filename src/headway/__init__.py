"""Headway load-tests inference services and tells the truth about what it measured."""

__version__ = "0.1.0"
