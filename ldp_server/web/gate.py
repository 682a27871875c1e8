"""One visit of a page by somebody who is signed in, and what its template needs."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ldp_server.analyst import Analyst, ServerStatus
from ldp_server.web.render import page
from ldp_server.web.sessions import Session, Visitor
from ldp_server.web.site import Site

__all__ = ["Visit", "same_csrf"]


@dataclass
class Visit:
    """A request, the site, the session it belongs to, and the fields of its form."""

    request: Request
    site: Site
    session: Session
    form: Mapping[str, str]
    status: ServerStatus | None = None

    @property
    def analyst(self) -> Analyst:
        return self.session.analyst

    @property
    def role(self) -> str:
        """What the token allows."""
        return "" if self.status is None else self.status.role

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query_params

    def page(self, template: str, here: str, status: int = 200, **values: Any) -> Response:
        """Return a page; `here` is the place in the navigation."""
        return page(template, status, here=here, csrf=self.session.csrf, role=self.role, **values)


def same_csrf(visitor: Visitor, form: Mapping[str, str]) -> bool:
    """Whether a form was made for this browser."""
    return hmac.compare_digest(form.get("csrf", "").encode(), visitor.csrf.encode())
