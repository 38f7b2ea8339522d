from django.db import models


class Effect(models.Model):
    """One row for each time that something was done."""

    name = models.CharField(max_length=100)

    def __str__(self) -> str:
        return self.name


class Counter(models.Model):
    """A row to update, to wait for and to collide on."""

    name = models.CharField(max_length=100, primary_key=True)
    value = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name}: {self.value}"
