"""The curator: exact audits of its releases, their accuracy beside classical baselines, merging, speed.

benchmark    all of it, in its order
outcomes     the exact law of a central mechanism: every outcome of its draws is listed
concave_law  that of RecConcave, computed apart from its code
wrong        mechanisms as they are printed in the papers, with their errors: an audit must catch each
audits_ranges, audits_shifts    exact audits, of releases that choose and of releases that add noise
ranges, workloads, queries      accuracy beside classical baselines
inference    the fit of MWEM beside that of private-PGM
hybrid       what volunteers are worth
"""
