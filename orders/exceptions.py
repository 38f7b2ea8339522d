"""Why an order was not made.

OrderRefused
├── UnknownSku          the shop does not sell this article
├── CurrencyMismatch    the article is not sold in this currency
└── OrderNumberReused   the client's order number belongs to an order with other content
"""


class OrderRefused(Exception):
    """Nothing was ordered, nothing was taken. ``code`` is the stable name that clients see."""

    code = "order_refused"


class UnknownSku(OrderRefused):
    """The shop does not sell this article."""

    code = "unknown_sku"

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


class CurrencyMismatch(OrderRefused):
    """The article is not sold in this currency."""

    code = "currency_mismatch"

    def __init__(self, sku: str, currency: str) -> None:
        super().__init__(sku, currency)
        self.sku = sku
        self.currency = currency


class OrderNumberReused(OrderRefused):
    """The client's number belongs to the order ``order_no``, which has other lines or another currency."""

    code = "order_number_reused"

    def __init__(self, order_no: str) -> None:
        super().__init__(order_no)
        self.order_no = order_no
