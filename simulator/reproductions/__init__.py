"""Measurements of what the papers claim. These modules are not part of the installed package: they need a checkout."""
