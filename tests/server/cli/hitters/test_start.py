"""A file that a search begins with: an answer's JSON or lines; anything else is one clear error."""

import json

import pytest

from ldp_client.errors import InvalidSpec
from ldp_server.answers.to_json import dump, to_json
from ldp_server.cli.hitters.start import items_of_answer
from tests.server.answers.test_wire import FOUND


def test_the_json_of_an_answer_gives_its_items():
    assert items_of_answer(dump(to_json(FOUND)).split("\n")) == ["köln", b"\xff\xfe"]
    spread = json.dumps({"items": [{"item": {"integer": -5}}, {"item": {"text": "7"}}]}, indent=2)
    assert items_of_answer(spread.split("\n")) == [-5, "7"]
    assert items_of_answer(['{"items": []}']) == []


def test_lines_are_items_without_their_weights():
    assert items_of_answer(["tea", "mate\t2.5", "", '{"a": 1}', "17"]) == ["tea", "mate", "", '{"a": 1}', "17"]
    assert items_of_answer(["17"]) == ["17"]  # JSON too, but no answer
    assert items_of_answer(['{"items": 3}']) == ['{"items": 3}']
    assert items_of_answer(["[" * 100_000]) == ["[" * 100_000]


@pytest.mark.parametrize(
    "row",
    [
        3,
        {},
        {"item": "tea"},
        {"item": {"text": 5}},
        {"item": {"integer": True}},
        {"item": {"integer": "5"}},
        {"item": {"hex": "xyz"}},
        {"item": {"none": True}},
        {"item": {"text": "a", "hex": "00"}},
    ],
)
def test_an_answer_of_another_kind_is_refused_without_its_content(row):
    with pytest.raises(InvalidSpec, match=r"no list of popular items: give what --json printed") as refused:
        items_of_answer([json.dumps({"items": [row]})])
    assert "tea" not in str(refused.value)
    assert "xyz" not in str(refused.value)
