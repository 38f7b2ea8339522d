"""What goes wrong silently, said aloud by ``manage.py check``, each with an id and a hint.

``check --database default`` asks the database server too.
"""

from . import brokers, caches, databases, outbox, settings, views  # noqa: F401  they register themselves
