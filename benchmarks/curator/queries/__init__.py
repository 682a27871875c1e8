"""The curator's answers to queries of one's own: audits, and errors beside classical baselines."""
