"""How fields of records go together.

commands   gaps, rules
maps       fair-map
planning   rules-plan
"""
