"""Uploads and orders at the same moment, on real servers."""

import httpx
import pytest

from tests.campaigns import rounds
from tests.imports.files import numbered
from tests.shopping import at_once, http_client, request_body

SETTLED = {200, 202, 409}
"""What a repeat may be answered while or after the first runs."""


@pytest.fixture
def server(serve, vendor, tmp_path):
    server = serve(
        database=vendor,
        env={"IMPORTS_DIR": str(tmp_path / "imports"), "IMPORTS_AT_ONCE": "100000", "THROTTLE_RATE": ""},
    )
    connection = server.connect()
    connection.cursor().execute("UPDATE stock_stockitem SET on_hand = 1000000")
    connection.close()
    return server


def send(client: httpx.Client, content: bytes) -> httpx.Response:
    return client.post("/api/imports", data={"mode": "batch"}, files={"file": ("orders.csv", content)})


def test_one_of_many_uploads_of_a_file_is_imported(server):
    """IMP-02"""
    content = numbered(500)
    with http_client(server.url) as client:
        answers = at_once(8, lambda _index: send(client, content))
        later = send(client, content)

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses.count(201) == 1
    assert {*statuses} - {201} <= SETTLED, [answer.text for answer in answers]
    first = next(answer.json()["data"] for answer in answers if answer.status_code == 201)
    repeats = [answer.json()["data"] for answer in answers if answer.status_code in (200, 202)]
    assert {data["importId"] for data in repeats} <= {first["importId"]}
    assert all(data["isDuplicate"] for data in repeats)
    assert (later.status_code, later.json()["data"]["created"]) == (200, 500)
    assert server.scalar("SELECT COUNT(*) FROM imports_import") == 1
    assert server.scalar("SELECT COUNT(*) FROM orders_order") == 500
    assert server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == 999_500


def test_files_with_the_same_orders_make_each_once(server):
    contents = [numbered(300, start=1), numbered(300, start=101) + b"\n", numbered(400, start=1) + b"\n\n"]
    with http_client(server.url) as client:
        answers = at_once(len(contents), lambda index: send(client, contents[index]))
        for content in contents:
            assert send(client, content).status_code in (200, 201)

    assert {answer.status_code for answer in answers} <= {201, 202}, [answer.text for answer in answers]
    assert server.scalar("SELECT COUNT(*) FROM orders_order") == 400
    assert server.scalar("SELECT SUM(created) FROM imports_import") == 400
    assert server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == 999_600


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_orders_are_taken_while_a_large_file_is_imported(server):
    """IMP-27"""
    lines, each = rounds(short=2_000, full=10_000), rounds(short=10, full=50)
    headers = {"Authorization": "Token demo-bob"}

    def act(index):
        with http_client(server.url) as client:
            if not index:
                return [send(client, numbered(lines))]
            return [
                client.post(
                    "/api/orders",
                    json=request_body(("TEA-100", 1)),
                    headers={**headers, "Idempotency-Key": f"{index}-{number}"},
                )
                for number in range(each)
            ]

    imported, *ordered = at_once(5, act)

    assert [answer.status_code for answer in imported] == [201], imported[0].text
    assert imported[0].json()["data"]["created"] == lines
    assert {answer.status_code for answers in ordered for answer in answers} == {201}
    assert server.scalar("SELECT COUNT(*) FROM orders_order") == lines + 4 * each
    assert server.scalar("SELECT on_hand FROM stock_stockitem WHERE sku = 'TEA-100'") == (
        1_000_000 - lines - 4 * each
    )
