"""One text from one place: what a relay is worth, to analysts, on all pages, and on the page of one's own device."""

import asyncio

import pytest

from ldp_client.collection import Schedule
from ldp_client.ledger.database import Storage
from ldp_client.privacy.statement import privacy_statement
from ldp_client.trust.policy import Policy
from ldp_client.view import Sight, user_view
from ldp_server.analyst import Analyst
from ldp_server.config import SealingConfig
from ldp_server.sealing.keys import new_key
from ldp_server.web import Site, WebSettings
from tests.server.helpers import NOW, live, make_collection
from tests.server.web.conftest import Browser
from tests.server.web.test_pages import Page

DAY = 86_400


@pytest.mark.long
async def test_the_statement_of_a_question_with_a_relay(tmp_path):
    new_key(tmp_path / "keys", 90 * DAY, NOW)
    collection = make_collection(
        "Sealed?", smallest_batch=10_000, schedule=Schedule(DAY, 30), opens=NOW - DAY, closes=NOW + 60 * DAY
    )
    lines = privacy_statement(collection).lines
    assert any("if the relay is honest" in line for line in lines)
    async with live(tmp_path / "d", sealing=SealingConfig(keys=tmp_path / "keys")) as server:
        await server.create(collection)
        token = tmp_path / "token"
        token.write_text(server.token)

        def connect(_: str | None) -> Analyst:
            return Analyst(f"127.0.0.1:{server.server.port}", token=token)

        def asked():
            with connect(None) as analyst:
                return analyst.show(collection).statement, analyst.estimate(collection, top=1).statement

        assert await asyncio.to_thread(asked) == (lines, lines)
        site = Site(WebSettings(), connect, lambda: server.token)
        site.public = True
        browser = Browser(site)
        try:
            assert (await browser.sign_in(server.token)).status_code == 303
            for path in (f"/c/{collection.id.hex()[:16]}", f"/public/{collection.id.hex()[:16]}"):
                said = "".join(Page((await browser.get(path)).text).texts)
                assert all(line in said for line in lines), path
        finally:
            await browser.http.aclose()
            site.close()
    policy = Policy(max_epsilon="2", budget="9", period="30 days", lifetime="60")
    view = user_view(Sight(Storage(tmp_path / "device"), policy), [collection])
    (question,) = view.questions
    own = privacy_statement(collection, groups=()).lines  # of this device, the page says it of devices like it
    assert set(own) <= set(lines)
    assert all(line in (*view.statement, *question.says) for line in own)
