"""What the papers say, measured. These modules are not part of the installed package: they need a checkout."""
