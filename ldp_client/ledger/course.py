"""How far the ledger has come, as far as this process knows and as its witness remembers."""

from __future__ import annotations

from ldp_client.errors import StorageError
from ldp_client.ledger.schema import Damaged, Recent, State
from ldp_client.ledger.witness import LedgerProgress, Witness

__all__ = ["Course"]

_NOWHERE = LedgerProgress(b"", 0)


class Course:
    """The furthest progress that this process has seen. A ledger behind it, or behind the witness, is rolled back."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.seen = _NOWHERE
        self.recent: Recent | None = None
        self._witness_late = False

    def forget(self) -> None:
        """Begin anew, after a reset."""
        self.seen = _NOWHERE

    def check(self, state: State, seen: LedgerProgress, *, alone: bool) -> None:
        """Refuse a state that is behind `seen`. `alone`: no other process can commit meanwhile."""
        if state.instance == seen.instance:
            if state.generation < seen.generation:
                raise Damaged("it is an older copy of itself")
        elif seen.instance:  # another process has reset the ledger
            self.recent = None
            if alone:
                self.compare(state, self.witness.read())

    def compare(self, state: State, progress: LedgerProgress | None) -> None:
        """Refuse a state that does not fit the witness."""
        if progress is None:
            if state.generation:
                raise Damaged("its witness is missing")
        elif progress.instance != state.instance:
            raise Damaged("its witness belongs to another ledger")
        elif state.generation < progress.generation:
            raise Damaged("it is an older copy of itself")

    def begin(self, state: State, progress: LedgerProgress | None, *, writes: bool) -> None:
        """Take note of a ledger that was opened and found sound. Only a writer brings a late witness up to date."""
        current = LedgerProgress(state.instance, state.generation)
        self._look_ahead(current)
        if progress is not None and progress.generation >= current.generation:
            return
        if writes:
            self.witness.write(current, durable=True)
        else:
            self._witness_late = True

    def before_charge(self) -> None:
        """Write a late witness. If that fails, nothing may be charged."""
        if self._witness_late:
            self.witness.write(self.seen, durable=True)
            self._witness_late = False

    def after_charge(self, state: State) -> None:
        """Take note of a commit. If the witness cannot be written the charge stands, and the next one has to wait."""
        self.recent = state.recent  # only now: time must not depend on what is not on the disk
        progress = LedgerProgress(state.instance, state.generation)
        self._look_ahead(progress)
        try:
            self.witness.write(progress, durable=progress.generation == 1)
        except StorageError:
            self._witness_late = True

    def _look_ahead(self, progress: LedgerProgress) -> None:
        """Threads may report their progress in any order."""
        if progress.instance != self.seen.instance:
            self.recent = None
            self.seen = progress
        elif progress.generation > self.seen.generation:
            self.seen = progress
