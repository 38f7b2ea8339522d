from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "benchmarks.project"
    label = "benchmarks"
    default_auto_field = "django.db.models.BigAutoField"
