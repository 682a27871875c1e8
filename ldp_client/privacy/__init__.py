"""Privacy accounting: plain maths, exact or rounded towards privacy, for client, server and simulator.

Start with `compose` (many reports of one person), `PrivacyFilter` (a fixed total), `group` (several people) and
`privacy_statement` (all of it in words). The modules have the rest, by topic.
"""

from ldp_client.privacy.attributes import AttributeFilter
from ldp_client.privacy.charges import Charges, basic, tally
from ldp_client.privacy.composition import Total, advanced, compose, every_rule
from ldp_client.privacy.curves import Curve, LawCurve, ResponseCurve, Tcdp, pure_rho
from ldp_client.privacy.filters import PrivacyFilter, RenyiFilter
from ldp_client.privacy.groups import every_group_of, group, group_rules
from ldp_client.privacy.statement import Device, PrivacyStatement, QuestionTerms, privacy_statement
from ldp_client.privacy.yardsticks import d_opt, lower_bound_shape, optimal_scan_error, sigma_opt, v_opt

__all__ = [
    "AttributeFilter",
    "Charges",
    "Curve",
    "Device",
    "LawCurve",
    "PrivacyFilter",
    "PrivacyStatement",
    "QuestionTerms",
    "RenyiFilter",
    "ResponseCurve",
    "Tcdp",
    "Total",
    "advanced",
    "basic",
    "compose",
    "d_opt",
    "every_group_of",
    "every_rule",
    "group",
    "group_rules",
    "lower_bound_shape",
    "optimal_scan_error",
    "privacy_statement",
    "pure_rho",
    "sigma_opt",
    "tally",
    "v_opt",
]
