"""Volunteers: users who give a curator their raw answer, because they trust the operator and said so.

This is another promise than that of a report, so it has another call, another consent, another budget and other words.
It is off unless the policy names the curators.

consent   what a user agreed to
records   the bytes of a record, and their seal
book      what was volunteered, in the ledger's file: the consent, the budget, the sealed record
giving    sends records and withdrawals, at moments of its own
"""

from ldp_client.volunteering.consent import Consent

__all__ = ["Consent"]
