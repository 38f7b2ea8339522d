#!/usr/bin/env python
"""Run a management command on this checkout."""

import os
import sys


def main() -> None:
    """Hand the command line to Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if "SECRET_KEY" not in os.environ:  # a deployment has one; this is a checkout on somebody's desk
        os.environ.setdefault("DEBUG", "1")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
