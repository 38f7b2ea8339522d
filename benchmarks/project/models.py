from django.conf import settings
from django.db import models


class Stock(models.Model):
    sku = models.CharField(max_length=32, primary_key=True)
    on_hand = models.IntegerField()


class Order(models.Model):
    """The effect: one row for each time that an order really was made."""

    sku = models.CharField(max_length=64, db_index=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    amount = models.IntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
