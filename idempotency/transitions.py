"""Move a status by a conditional UPDATE: the WHERE clause is the state machine."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar

from django.core.exceptions import MultipleObjectsReturned
from django.db import models, transaction

_Model = TypeVar("_Model", bound=models.Model)


class InvalidTransition(Exception):
    """The row is in a state from which the asked one cannot be reached; nothing changed."""

    code = "invalid_transition"

    def __init__(self, source: str, target: str) -> None:
        super().__init__(source, target)
        self.source = source
        self.target = target

    def __str__(self) -> str:
        return f"no move leads from {self.source} to {self.target}"


class TransitionQuerySet(models.QuerySet[_Model]):
    """A QuerySet whose model has a status; a subclass declares the allowed moves once.

    >>> class OrderQuerySet(TransitionQuerySet):
    ...     moves = {"PENDING": {"PAID", "CANCELLED"}, "PAID": {"SHIPPED"}}
    """

    moves: ClassVar[Mapping[str, Collection[str]]] = {}
    """For each state the states that can follow."""

    status_field: ClassVar[str] = "status"

    def transition(self, *, to: str, **values: Any) -> bool:
        """Move the one row of this QuerySet to ``to`` and set ``values`` with it.

        However many callers try at once, one of them gets ``True``.

        :returns: ``True`` when this call moved it, ``False`` when it was there: ``values`` are not set.
        :raises InvalidTransition: when it is in a state that does not lead there.
        :raises ValueError: when no declared move leads there.
        :raises DoesNotExist: when the QuerySet is empty.
        :raises MultipleObjectsReturned: when it holds several rows; none is moved.
        """
        sources = self._sources(to)
        if self._move(sources, {**values, self.status_field: to}):
            return True
        present = self._present_state()
        if present == to:
            return False
        if present in sources:  # a rival moved it between the two statements
            return self.transition(to=to, **values)
        raise InvalidTransition(present, to)

    def _sources(self, to: str) -> list[str]:
        if sources := [str(source) for source, targets in self.moves.items() if to in targets]:
            return sources
        raise ValueError(f"{type(self).__name__}.moves has no move to {str(to)!r}.")

    def _move(self, sources: list[str], values: dict[str, Any]) -> bool:
        self._for_write = True
        with transaction.atomic(using=self.db, savepoint=False):
            moved = self.filter(**{f"{self.status_field}__in": sources}).update(**values)
            if moved > 1:
                raise MultipleObjectsReturned(f"{moved} rows: transition() moves one.")
        return moved == 1

    def _present_state(self) -> str:
        # The locking read sees past the snapshot of REPEATABLE READ, as the UPDATE did.
        with transaction.atomic(using=self.db, savepoint=False):
            return str(self.select_for_update().values_list(self.status_field, flat=True).get())
