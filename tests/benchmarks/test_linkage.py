"""The benchmark of what can be linked sees what there is to see, and a real relay hides it."""

import pytest

from benchmarks.anonymity import linkage


@pytest.mark.long
def test_everything_is_linked_without_a_relay_and_next_to_nothing_with_one(monkeypatch):
    """With 25 devices and a relay each way pairs one device by chance; more than 9 in one pairing have chance 10^-7."""
    monkeypatch.setattr(linkage, "DEVICES", 25)
    monkeypatch.setattr(linkage, "QUESTIONS", 2)
    direct = linkage.linked(relay=False)
    assert (direct["connection"], direct["order"]) == ([25], [25])
    hidden = linkage.linked(relay=True)
    assert all(count <= 9 for way in linkage.WAYS for count in hidden[way])
