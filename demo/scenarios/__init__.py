"""What goes wrong, and what the shop makes of it.

Each scenario sends real requests, and counts in the database and at the providers what they did.
"""

from collections.abc import Callable, Iterator
from typing import Any

from django.utils.translation import gettext_lazy

from demo.walk import Step, Walk

from . import crowds, messages, orders, payments

Scenario = Callable[[Walk], Iterator[Step]]

SCENARIOS: tuple[tuple[Any, Scenario], ...] = (
    (gettext_lazy("Triple click"), orders.triple_click),
    (gettext_lazy("Lost answer, retried"), orders.lost_answer),
    (gettext_lazy("Same key, another body"), orders.other_body),
    (gettext_lazy("Twenty at once"), orders.twenty_at_once),
    (gettext_lazy("Worker killed, retried"), orders.killed_worker),
    (gettext_lazy("Paid three times"), payments.pay_three_times),
    (gettext_lazy("Charged without an answer, retried"), payments.silent_provider),
    (gettext_lazy("Worker killed after the charge, retried"), payments.killed_after_charge),
    (gettext_lazy("Callback five times"), payments.five_callbacks),
    (gettext_lazy("Callbacks out of order"), payments.callbacks_out_of_order),
    (gettext_lazy("Code asked for twenty times at once"), messages.code_twenty_times),
    (gettext_lazy("Text sent without an answer, asked for again"), messages.silent_sender),
    (gettext_lazy("Worker killed while it tells of a payment"), messages.killed_teller),
    (gettext_lazy("More buyers than pieces"), crowds.more_buyers_than_pieces),
    (gettext_lazy("File uploaded twice"), crowds.file_twice),
)
