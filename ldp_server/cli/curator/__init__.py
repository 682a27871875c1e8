"""The curator's commands: create, release, merge, strategies, synthesize, ledger, show, verify, forget, agent.

They call no server.

commands   create, ledger, show, verify, forget
releasing  release
merging    merge
agent      agent
fields     the options of releases about several fields
strategies     strategies
synthesizing   synthesize
both_sources   what volunteers add to `estimate` and `average`
tables     the tables that they print
"""
