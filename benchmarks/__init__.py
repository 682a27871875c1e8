"""Measurements: `python -m benchmarks NAME [--json] [--full]`. Every claim of the documentation has a row here."""
