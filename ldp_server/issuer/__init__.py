"""The issuer of unlinkable tokens: a small process of its own, behind the operator's log-in.

The operator's back end knows its users. It calls the issuer with the name of an account and with the requests of this
account's app, and takes the answers back. The issuer counts how many tokens each account got, and signs blindly. It
belongs to whoever runs the log-in, and never to the machine of the collection server: there it would see both ends.

backend     what a back end calls the issuer with
server      one issuer: its parts, start, end
handlers    the method of the wire's service Issuer
checks      what `ldp-server token issuer-check` looks at
accounts    how many tokens each account got, durable
signing     private keys, and the signature itself
settings    the configuration
counters    what it counts, for Prometheus
"""

from ldp_server.issuer.backend import IssuerClient

__all__ = ["IssuerClient"]
