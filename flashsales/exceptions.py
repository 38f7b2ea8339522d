"""Why somebody gets no ticket; nothing was taken. A sale without units left is ``InsufficientStock``.

FlashSaleRefused
├── AlreadyBought   the user has a unit of this sale
├── SaleNotBegun    too early
├── SaleEnded       too late
└── SalesOverlap    for staff: the article has another sale at that time
"""


class FlashSaleRefused(Exception):
    """``code`` is the stable name that clients see."""

    code = "flash_sale_refused"

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


class AlreadyBought(FlashSaleRefused):
    """The user has a unit of this sale, under another key. One is the limit."""

    code = "already_bought"


class SaleNotBegun(FlashSaleRefused):
    """The sale has not begun. Come back when it has."""

    code = "sale_not_begun"


class SaleEnded(FlashSaleRefused):
    """The sale is over."""

    code = "sale_ended"


class SalesOverlap(FlashSaleRefused):
    """The article has another sale at that time: end one before the other begins."""

    code = "sales_overlap"
