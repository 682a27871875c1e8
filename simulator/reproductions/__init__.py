"""What the papers say, measured."""
