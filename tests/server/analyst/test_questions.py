"""What a question writes into its request."""

import zlib

import numpy as np
import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.analyst.questions import Questions


def asked(**given):
    """The request of a search, which is made and not sent."""
    return Questions.heavy_hitters.__wrapped__(Questions(), "abcd", **given).request


@pytest.mark.parametrize(
    ("dictionary", "source", "words"),
    [
        (None, pb.DICTIONARY_UNSPECIFIED, None),
        ("earlier", pb.EARLIER_LIST, None),
        ((), pb.NO_DICTIONARY, None),
        (["tea", "mate"], pb.DICTIONARY_UNSPECIFIED, b"tea\nmate"),
        (("tea",), pb.DICTIONARY_UNSPECIFIED, b"tea"),
        ({"tea": 2.0}, pb.DICTIONARY_UNSPECIFIED, b"tea\t2.0"),
        (np.array(["tea", "mate"]), pb.DICTIONARY_UNSPECIFIED, b"tea\nmate"),
    ],
)
def test_a_dictionary_is_given_or_chosen_by_the_server(dictionary, source, words):
    request = asked(dictionary=dictionary)
    assert request.dictionary_source == source
    assert (zlib.decompress(request.dictionary) if request.dictionary else None) == words


def test_how_items_are_found_is_checked():
    assert asked(exploratory=True, copies="once").exploratory
    assert asked(copies="once").copies == pb.ONCE
    with pytest.raises(InvalidSpec, match="a dictionary is a list of items"):
        asked(dictionary="later")
    with pytest.raises(InvalidSpec, match="copies are"):
        asked(copies="twice")
    with pytest.raises(TypeError, match="explore"):
        asked(explore=True)
