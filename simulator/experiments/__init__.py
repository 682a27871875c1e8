"""The experiments behind the commands of `ldp-simulate`: each a function from parameters to data."""
