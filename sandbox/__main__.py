"""``python -m sandbox``"""

import argparse
from pathlib import Path

from .notifying import Notifier
from .server import Sandbox, serve
from .store import Store


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="Providers to play with.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--store", type=Path, help="an SQLite file; by default it forgets all when it ends")
    parser.add_argument(
        "--notify", help="where the shop takes notices, such as http://…/api/payments/callbacks"
    )
    parser.add_argument("--secrets", type=Path, help="the keys that sign them, see secrets.py")
    options = parser.parse_args()
    notifier = Notifier.read(url=options.notify, secrets=options.secrets)
    sandbox = Sandbox(store=Store(options.store), notifier=notifier)
    serve(host=options.host, port=options.port, sandbox=sandbox)


if __name__ == "__main__":
    main()
