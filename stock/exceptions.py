"""What the stock can say instead of yes."""


class InsufficientStock(Exception):
    """Fewer pieces are on hand than asked for; nothing was taken."""

    code = "insufficient_stock"

    def __init__(self, sku: str) -> None:
        super().__init__(sku)
        self.sku = sku


class DeductionDiffers(Exception):
    """The reference has a deduction of this article already, of another quantity; nothing was taken."""

    code = "deduction_differs"

    def __init__(self, sku: str, reference: str) -> None:
        super().__init__(sku, reference)
        self.sku = sku
        self.reference = reference
