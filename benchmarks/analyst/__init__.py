"""Benchmarks of the analyst: questions, answers as tables."""
