"""Equal requests at once, on four processes: one of them works, and all of them hear of it."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.campaigns import rounds
from tests.processes import WebServer
from tests.scenarios.clients import Answer, Client, Order
from tests.scenarios.conftest import ALL, is_sqlite, served
from tests.scenarios.effects import ONE_EFFECT, ONE_ORDER, Effects, effects, expire
from tests.scenarios.gates import Gate
from tests.shopping import at_once

RIVALS = 32
ROUNDS = rounds(short=1, full=50)


def check_orders(answers: list[Answer], shop: WebServer) -> None:
    """One is the first, each other success its duplicate, and the rest come again later."""
    statuses = Counter(answer.status for answer in answers)
    assert statuses[201] == 1
    assert statuses.keys() <= ({200, 201} if is_sqlite(shop) else {200, 201, 409})
    made = [answer for answer in answers if answer.status < 300]
    assert len({answer.order for answer in made}) == 1
    assert {(answer.status, answer.data["isDuplicate"]) for answer in made} <= {(201, False), (200, True)}
    check_refusals(answers)


def check_effects(answers: list[Answer], shop: WebServer) -> None:
    """Each success is the first one's answer, to the byte."""
    statuses = Counter(answer.status for answer in answers)
    assert statuses.keys() <= ({201} if is_sqlite(shop) else {201, 409})
    made = [answer for answer in answers if answer.status == 201]
    assert (
        len({(answer.body, answer.headers["location"], answer.headers["content-type"]) for answer in made})
        == 1
    )
    assert sum("idempotent-replayed" not in answer.headers for answer in made) == 1
    check_refusals(answers)


def check_refusals(answers: list[Answer]) -> None:
    for answer in answers:
        if answer.status == 409:
            assert (answer.document["code"], answer.retry_after) == ("operation_in_progress", 1)


@pytest.mark.campaign
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("shop", ALL, indirect=True)
class TestRace:
    def test_makes_one_order(
        self, shop: WebServer, alice: Client, round_: int, figures: Callable[..., None]
    ) -> None:
        order, before = Order(), effects(shop)
        answers = at_once(RIVALS, lambda _: alice.order(order))
        check_orders(answers, shop)
        figures(Counter(str(answer.status) for answer in answers), orders=1)
        assert effects(shop) - before == ONE_ORDER
        again = alice.order(order)
        assert (again.status, again.data["isDuplicate"]) == (200, True)
        assert again.order in {answer.order for answer in answers if answer.status < 300}

    def test_takes_an_expired_record_over_once(self, shop: WebServer, alice: Client, round_: int) -> None:
        order = Order()
        expired = alice.order(order)
        expire(shop, order.key)
        before = effects(shop)
        answers = at_once(RIVALS, lambda _: alice.order(order))
        check_orders(answers, shop)
        assert effects(shop) - before == Effects(orders=1, records=0, movements=1, taken=1)
        assert expired.order not in {answer.order for answer in answers if answer.status < 300}

    def test_has_one_effect_whose_answer_all_get(self, shop: WebServer, alice: Client, round_: int) -> None:
        key, before = Order().key, effects(shop)
        answers = at_once(RIVALS, lambda _: alice.effect(key))
        check_effects([*answers, alice.effect(key)], shop)
        assert effects(shop) - before == ONE_EFFECT

    @pytest.mark.parametrize("expired", [False, True], ids=["fresh", "expired"])
    def test_holds_rivals_off_while_the_first_is_in_its_handler(
        self, shop: WebServer, alice: Client, gate: Gate, round_: int, expired: bool
    ) -> None:
        """Refused at once where rows or keys are locked; on SQLite they queue behind the one writer."""
        order = Order()
        if expired:
            alice.order(order)
            expire(shop, order.key)
        before = effects(shop)
        with ThreadPoolExecutor(RIVALS) as pool:
            first = pool.submit(alice.order, order, gate.at("in_handler"))
            held = gate.wait()
            if is_sqlite(shop):
                rivals = [pool.submit(alice.order, order, gate.at("entered")) for _ in range(RIVALS - 1)]
                for _ in rivals:
                    gate.wait().release()
                assert not any(rival.done() for rival in rivals)
            else:
                rivals = [pool.submit(alice.order, order) for _ in range(RIVALS - 1)]
                assert {rival.result().status for rival in rivals} == {409}
            held.release()
        answers = [first.result(), *(rival.result() for rival in rivals)]
        check_orders(answers, shop)
        assert answers[0].status == 201
        assert effects(shop) - before == replace(ONE_ORDER, records=0 if expired else 1)


@pytest.mark.parametrize("shop", [served("mariadb"), served("mariadb", atomic=True)], indirect=True)
class TestTakeover:
    def test_goes_to_one_of_those_who_found_the_expired_record_together(
        self, shop: WebServer, alice: Client, gate: Gate
    ) -> None:
        """All of them hold a shared lock on it: each is in the way of all others."""
        order = Order()
        alice.order(order)
        expire(shop, order.key)
        before = effects(shop)
        with ThreadPoolExecutor(RIVALS) as pool:
            answers = [pool.submit(alice.order, order, gate.at("before_takeover")) for _ in range(RIVALS)]
            for held in [gate.wait() for _ in answers]:
                held.release()
        check_orders([answer.result() for answer in answers], shop)
        assert effects(shop) - before == replace(ONE_ORDER, records=0)
