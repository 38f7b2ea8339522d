from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("notifications", "0001_initial"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="message",
            name="notifications_kind_known",
        ),
        migrations.AlterField(
            model_name="message",
            name="kind",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "not said"),
                    ("verification", "verification code"),
                    ("notification", "notification"),
                    ("marketing", "marketing"),
                    ("receipt", "the shop's own receipt"),
                ],
                max_length=12,
                verbose_name="kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["", "verification", "notification", "marketing", "receipt"])
                ),
                name="notifications_kind_known",
            ),
        ),
    ]
