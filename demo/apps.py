from django.apps import AppConfig


class DemoConfig(AppConfig):
    """Shows the shop at work."""

    name = "demo"
