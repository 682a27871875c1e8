"""What an analyst asks about how fields of records go together: gaps between groups, rules, lines."""

from __future__ import annotations

from collections.abc import Iterable

from ldp_client.protocol.domain import FieldItem
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.answers import CollectionGaps, CollectionRegression, CollectionRules
from ldp_server.analyst.asking import Call, asked
from ldp_server.analyst.questions import Questions, Which, about, value_to_wire
from ldp_server.answers.over_time.periods import Periods
from ldp_server.answers.records import Where
from ldp_server.fairness.gaps import TOLERANCE

__all__ = ["Relating"]


class Relating(Questions):
    """The questions about several fields at once."""

    @asked
    def gaps(
        self,
        which: Which,
        group: str,
        outcome: str,
        counted: Iterable[FieldItem] = (),
        *,
        where: Where | None = None,
        tolerance: float = TOLERANCE,
        confidence: float = 0.95,
        periods: Periods | None = None,
    ) -> Call[CollectionGaps]:
        """Compare the groups of a field by the share of their members who have an outcome.

        `counted` are the values of the field `outcome` that count; without any, yes. The verdict says whether all gaps
        between groups lie within the tolerance. `where` compares only users with these values of other fields.
        """
        asking = pb.GapsQuestion(
            group=group,
            outcome=outcome,
            counted=map(value_to_wire, counted),
            where=[pb.Slice(field=name, items=map(value_to_wire, values)) for name, values in (where or {}).items()],
            tolerance=tolerance,
        )
        request = pb.RelationsRequest(**about(which, periods), confidence=confidence, gaps=asking)
        return Call("Relations", request, CollectionGaps.of, long=True)

    @asked
    def rules(
        self,
        which: Which,
        fields: Iterable[str],
        label: str,
        positive: Iterable[FieldItem] = (),
        *,
        confidence: float = 0.95,
        periods: Periods | None = None,
    ) -> Call[CollectionRules]:
        """Find the rules about one or two fields that tell the label best.

        One field gives points, stumps and, of integers, thresholds; two fields of integers give rectangles. `positive`
        are the values of the label to be told from its others; without any, yes.
        """
        asking = pb.RulesQuestion(fields=fields, label=label, positive=map(value_to_wire, positive))
        request = pb.RelationsRequest(**about(which, periods), confidence=confidence, rules=asking)
        return Call("Relations", request, CollectionRules.of, long=True)

    @asked
    def line(
        self,
        which: Which,
        fields: Iterable[str],
        label: str,
        *,
        confidence: float = 0.95,
        periods: Periods | None = None,
    ) -> Call[CollectionRegression]:
        """Estimate by how much the label's mean rises with each of the fields: linear regression.

        All are fields of integers, or of yes (1) and no (0).
        """
        asking = pb.LineQuestion(fields=fields, label=label)
        request = pb.RelationsRequest(**about(which, periods), confidence=confidence, line=asking)
        return Call("Relations", request, CollectionRegression.of, long=True)
