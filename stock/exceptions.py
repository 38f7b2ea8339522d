"""What the stock can say instead of yes; each time nothing was taken."""

from datetime import timedelta


class InsufficientStock(Exception):
    """Fewer pieces are on hand than asked for."""

    code = "insufficient_stock"

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


class StockChanged(Exception):
    """The stock is not any more as it was at the version that the caller has seen. Look, and decide anew."""

    code = "stock_changed"

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


class StockBusy(Exception):
    """Rivals were quicker each time, and pieces remain. Repeat after ``retry_after``."""

    code = "stock_busy"
    retry_after = timedelta(seconds=1)

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


class DeductionDiffers(Exception):
    """The reference has a deduction of this article already, of another quantity."""

    code = "deduction_differs"

    def __init__(self, sku: str, reference: str) -> None:
        super().__init__(sku, reference)
        self.sku = sku
        self.reference = reference
