"""Generated from proto/ldp/v1 by proto/generate.py; do not edit."""
