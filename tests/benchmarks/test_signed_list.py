"""The attacks on the signed list and on tokens, in small."""

from benchmarks.attacks import access
from benchmarks.attacks.signed_list import refused_lies


def test_no_list_that_contradicts_the_held_one_is_accepted():
    assert refused_lies(3) == (9, 0)


def test_no_other_program_gets_the_local_token():
    (stranger,) = [attack for attack in access.ATTACKS if attack.name == "token-stranger"]
    assert [line.ok for line in stranger.run()] == [True]
