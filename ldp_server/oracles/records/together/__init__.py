"""All tables of a question made possible together, with less noise than each has by itself.

causes     what goes together in pairs of fields, as far as a few common causes explain it
shrinking  effects moved towards these causes, or towards independent fields, as far as noise explains the rest
joint      the nearest tables that are possible and agree
"""
