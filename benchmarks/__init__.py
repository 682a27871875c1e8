"""Measurements: `python -m benchmarks NAME [--json] [--full]`. The documentation's numbers are measured here."""
