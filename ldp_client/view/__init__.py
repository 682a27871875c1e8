"""What a user sees: a local page that shows what this device was asked, what it sent, what is left, and how to stop.

    with ldp_client.view.LocalPage(client) as page:     # in an app: a menu entry opens page.link()
        webbrowser.open(page.link())

`serve` runs the page until Ctrl-C or until nobody has looked for a while: `ldp-client view`.
"""

from ldp_client.view.content import ReportLine, ShownQuestion, Sight, UserView, user_view
from ldp_client.view.serving import LocalPage, serve

__all__ = ["LocalPage", "ReportLine", "ShownQuestion", "Sight", "UserView", "serve", "user_view"]
