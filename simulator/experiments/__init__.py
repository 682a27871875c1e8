"""What `ldp-simulate` runs: each experiment a function from parameters to data, and its command beside it."""
