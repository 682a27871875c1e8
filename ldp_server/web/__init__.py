"""Pages for analysts and operators: what was asked, what was learned, and whether the server is well.

The pages are made on this side: they need no script, and load nothing from elsewhere. They ask the collection server
through `ldp_server.analyst`, each session with its own token, and know no more than its role allows.

serve          serves a site until told to stop
app            addresses, sign-in before each page, errors as pages
settings       where it listens, and who is believed
guard          what every request and every answer passes
sessions       who is signed in; keys that work once; wrong tokens
site           what all pages share: calls in threads, answers kept for a moment
gate           one visit by somebody who is signed in
pages          the pages themselves
views          what can be looked at, with its call, its command and its line of Python
periods        which periods a page is about
over_time      what is asked about several periods or two collections, and how it is shown
two_sources    a curator's releases about volunteers, beside the reports
public_list    the questions, and the signed list with its proofs, for everybody
searches       searches for popular items, with progress
tables, figures, charts, render    answers as tables, as charts, as HTML
"""

from ldp_server.web.serve import serve_pages
from ldp_server.web.settings import WebSettings
from ldp_server.web.site import Site
from ldp_server.web.two_sources import CuratedReleases

__all__ = ["CuratedReleases", "Site", "WebSettings", "serve_pages"]
