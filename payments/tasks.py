"""The payments' work that nobody asks for, as a Celery task."""

from celery import shared_task

from .reconciling import reconcile


@shared_task(name="payments.reconcile", ignore_result=True)
def reconcile_payments() -> None:
    """Finish what was cut off, as ``manage.py reconcile_payments`` does."""
    for _ in reconcile():
        pass
