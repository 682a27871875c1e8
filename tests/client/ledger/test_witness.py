import pytest

from ldp_client.ledger.witness import LedgerProgress, Witness, WitnessDamaged

LEDGER = b"i" * 16


def test_the_largest_valid_record_counts(tmp_path):
    witness = Witness(tmp_path / "mark")
    assert witness.read() is None
    for generation in (*range(200), 63, 7):
        witness.write(LedgerProgress(LEDGER, generation))
    # 63 and 7 overwrote the records of 191 and 199, as processes that woke up late would
    assert witness.read() == LedgerProgress(LEDGER, 198)


@pytest.mark.parametrize("record", range(64))
def test_a_torn_record_costs_only_itself(tmp_path, record):
    witness = Witness(tmp_path / "mark")
    for generation in range(64):
        witness.write(LedgerProgress(LEDGER, generation))
    data = bytearray(witness.path.read_bytes())
    data[record * 64 + 20] ^= 1
    witness.path.write_bytes(data)
    assert witness.read() == LedgerProgress(LEDGER, 62 if record == 63 else 63)


@pytest.mark.parametrize("junk", [b"", b"x" * 5000, b"\0" * 4096])
def test_a_file_of_something_else_is_damaged(tmp_path, junk):
    witness = Witness(tmp_path / "mark")
    witness.path.write_bytes(junk)
    with pytest.raises(WitnessDamaged):
        witness.read()


def test_replace_forgets_the_rest(tmp_path):
    witness = Witness(tmp_path / "mark")
    for generation in range(90):
        witness.write(LedgerProgress(LEDGER, generation))
    witness.replace(LedgerProgress(b"j" * 16, 3))
    assert witness.read() == LedgerProgress(b"j" * 16, 3)
    assert [file.name for file in tmp_path.iterdir()] == ["mark"]
