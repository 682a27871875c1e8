"""Tests of simulator/price."""
