"""Synthetic records: a joint law of all fields that has the estimated tables, and records drawn from it.

tables   all tables of a question at once, and which sets of fields have a signal above the noise
fit      the joint law with the most entropy that has these tables; records
"""
