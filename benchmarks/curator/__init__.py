"""The curator: exact audits of its releases, their accuracy beside classical baselines, merging, speed.

outcomes     the exact law of a central mechanism: every outcome of its draws is listed
wrong        mechanisms as they are printed in the papers, with their errors: an audit must catch each
"""
