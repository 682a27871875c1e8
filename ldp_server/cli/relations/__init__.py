"""How fields of records go together.

commands   gaps, rules, line
maps       fair-map
planning   rules-plan
learning   learn
asking     ask
"""
