"""What the demo starts with."""

from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import make_password
from django.db import transaction
from rest_framework.authtoken.models import Token

from notifications.models import Contact
from orders.models import Article
from stock.models import StockItem

CURRENCY = "CNY"
STOCK = 100

ARTICLES = {
    "TEA-100": ("Green tea, 100 g", 1990),
    "TEA-200": ("Green tea, 200 g", 3500),
    "CUP-010": ("Tea cup", 1700),
    "POT-001": ("Tea pot", 12000),
}
"""Name and price in minor units."""

USERS = ("alice", "bob")
STAFF = "admin"

CONTACTS = {"alice": ("+8613912340001", "alice@shop.example"), "bob": ("+8613912340002", "bob@shop.example")}
"""Where receipts go."""


@transaction.atomic
def create_demo_data(*, stock: int | None) -> None:
    """Make users, tokens, articles and stock where they are missing; change nothing that is there.

    ``stock`` is what is on hand of each article afterwards; ``None`` leaves a known article's alone.
    """
    for name in USERS:
        _user(name)
    _user(STAFF, is_staff=True, is_superuser=True)
    for sku in ARTICLES:
        offer(sku, stock=stock)


def offer(sku: str, *, stock: int | None) -> None:
    """Sell an article, of which ``stock`` are on hand."""
    name, price_minor = ARTICLES.get(sku, (sku, 1990))
    Article.objects.get_or_create(
        sku=sku, defaults={"name": name, "price_minor": price_minor, "currency": CURRENCY}
    )
    if stock is not None or not StockItem.objects.filter(sku=sku).exists():
        StockItem.objects.recount(sku=sku, on_hand=STOCK if stock is None else stock)


def token_of(name: str) -> str:
    """Return the token that the demo gives this user."""
    return f"demo-{name}"


def _user(name: str, **flags: bool) -> None:
    password = name if name == STAFF else None  # the others have no page to log in to
    defaults = {"password": make_password(password), **flags}
    user, _created = get_user_model().objects.get_or_create(username=name, defaults=defaults)
    Token.objects.get_or_create(key=token_of(name), defaults={"user": user})
    if contact := CONTACTS.get(name):
        Contact.objects.get_or_create(user=user, defaults={"phone": contact[0], "email": contact[1]})
