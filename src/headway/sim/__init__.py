"""A simulated inference server: a process of its own that speaks the OpenAI API, for demos and for
tests that need a target whose truth is known.
"""
