"""Files to import, and the shop that imports them."""

from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from orders.models import Order
from tests.shopping import sell

FILES = Path(__file__).parents[1] / "data" / "files"
HEADINGS = "order_no,customer_phone,sku,quantity,unit_price,order_date,remark"
STOCK = 1_000_000


def sell_all(*, stock: int = STOCK) -> None:
    """Sell what the files order."""
    for sku in ("TEA-100", "TEA-200", "CUP-010", "POT-001"):
        sell(sku=sku, stock=stock)


def line(order_no: str, **cells: Any) -> str:
    """A line of a file of orders."""
    values = {
        "order_no": order_no,
        "customer_phone": "13800000001",
        "sku": "TEA-100",
        "quantity": 1,
        "unit_price": "19.90",
        "order_date": "2024-11-05",
        "remark": "",
        **cells,
    }
    return ",".join(str(values[name]) for name in HEADINGS.split(","))


def csv(*lines: str) -> bytes:
    """A file of these lines."""
    return "\n".join([HEADINGS, *lines, ""]).encode()


def numbered(count: int, *, start: int = 1, **cells: Any) -> bytes:
    """A file of so many orders."""
    return csv(*(line(f"SO-{number:06}", **cells) for number in range(start, start + count)))


def upload(
    client: APIClient, content: bytes | str, *, mode: str = "batch", name: str = "", **fields: Any
) -> Any:
    """POST a file, given by its name among the examples or by its bytes."""
    if isinstance(content, str):
        name, content = name or content, (FILES / content).read_bytes()
    file = SimpleUploadedFile(name or "orders.csv", content)
    return client.post("/api/imports", {"file": file, "mode": mode, **fields}, format="multipart")


def counts(data: dict[str, Any]) -> dict[str, int]:
    """What became of the lines, without what is 0."""
    names = ("created", "updated", "unchanged", "skipped", "rejected")
    return {name: data[name] for name in names if data[name]}


def rows(*fields: str) -> list[Any]:
    """These fields of all orders, by the client's number."""
    return list(Order.objects.order_by("client_order_no").values_list(*fields))
