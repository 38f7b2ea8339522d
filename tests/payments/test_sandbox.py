"""The sandbox keeps a provider's word: once by key, whole minor units, never more back than in."""

from time import monotonic, sleep

import httpx
import pytest

from tests.sandboxes import SandboxProcess

MONEY = {"amount_minor": 3980, "currency": "CNY"}


@pytest.fixture
def send(sandbox):
    """Ask as one of the providers; the answer's status and JSON."""

    def send(method, path, **content):
        with httpx.Client(base_url=f"{sandbox.url}/alipay", trust_env=False) as client:
            answer = client.request(method, path, json=content or None)
        return answer.status_code, answer.json()

    return send


@pytest.fixture
def key(request):
    return f"key_{abs(hash(request.node.nodeid))}_{monotonic():.9f}".replace(".", "_")


def charge(send, key, **members):
    return send("POST", "/charges", **{"key": key, "order_no": key, **MONEY, **members})


class TestCharge:
    def test_is_once_by_its_key(self, send, sandbox, key):
        first, again = charge(send, key), charge(send, key)
        assert first[0] == 200
        assert first == again == send("GET", f"/charges/{key}")
        (told,) = sandbox.charges(key)
        assert (told["order_no"], told["amount_minor"], told["currency"], told["key"], told["refunds"]) == (
            key, 3980, "CNY", key, []
        )  # fmt: skip

    @pytest.mark.parametrize("amount_minor", [39.8, "3980", 0, -1, None, True])
    def test_is_of_whole_minor_units(self, send, sandbox, key, amount_minor):
        assert charge(send, key, amount_minor=amount_minor)[0] == 400
        assert sandbox.charges(key) == []

    def test_that_was_declined_stays_declined(self, send, sandbox, key):
        sandbox.rule("decline", order=key)
        assert [charge(send, key)[0] for _ in range(2)] == [402, 402]
        assert send("GET", f"/charges/{key}")[0] == 402
        assert sandbox.charges(key) == []

    def test_is_refused_once_its_key_is_closed(self, send, sandbox, key):
        assert send("GET", f"/charges/{key}") == (200, {"charge": None})
        assert send("POST", f"/charges/{key}/close") == (200, {"charge": None})
        assert charge(send, key)[0] == 402
        assert sandbox.charges(key) == []

    def test_that_was_made_is_told_by_close(self, send, key):
        made = charge(send, key)
        assert send("POST", f"/charges/{key}/close") == made


class TestRefund:
    @pytest.fixture
    def refund(self, send, key):
        payment_no = charge(send, key)[1]["charge"]["payment_no"]

        def refund(number, amount_minor, currency="CNY"):
            asked = {"payment_no": payment_no, "amount_minor": amount_minor, "currency": currency}
            return send("POST", "/refunds", number=f"{key}-{number}", **asked)

        return refund

    def test_is_once_by_its_number(self, refund, sandbox, key):
        assert refund("R1", 1000) == refund("R1", 1000)
        assert refund("R1", 1001)[0] == 402
        assert [one["amount_minor"] for one in sandbox.charges(key)[0]["refunds"]] == [1000]

    def test_that_was_made_is_told_even_by_a_provider_that_declines_now(self, refund, sandbox, key):
        made = refund("R1", 1000)
        sandbox.rule("decline", call="refund", order=key)
        assert refund("R1", 1000) == made

    def test_is_never_more_than_the_charge(self, refund, sandbox, key):
        answers = [refund("R1", 3000), refund("R2", 981), refund("R3", 980), refund("R4", 1)]
        assert [status for status, _ in answers] == [200, 402, 200, 402]
        assert refund("R5", 1, currency="USD")[0] == 402


class TestOutage:
    def test_refuses_connections_and_remembers_what_was_charged(self):
        with SandboxProcess() as sandbox, httpx.Client(base_url=sandbox.url, trust_env=False) as client:
            asked = {"key": "K", "order_no": "O", **MONEY}
            client.post("/alipay/charges", json=asked, headers={"Connection": "close"})
            sandbox.outage(1.0)
            refused, until = 0, monotonic() + 30
            while monotonic() < until:
                try:
                    assert len(client.get("/charges", headers={"Connection": "close"}).json()) == 1
                except httpx.TransportError as error:
                    refused += isinstance(error, httpx.ConnectError)
                else:
                    if refused:
                        break
                sleep(0.05)
            assert refused
