"""How people read the key of an order."""


def order_label(*, user_id: int, cart_id: str, key: str) -> str:
    """Join ``{userId}_{cartId}_{uuid}``; a part's own ``_`` is percent-escaped: there is one reading."""
    return "_".join(_escape(part) for part in (str(user_id), cart_id, key))


def _escape(part: str) -> str:
    return part.replace("%", "%25").replace("_", "%5F")
