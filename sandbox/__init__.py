"""Providers to play with: a process of its own that the shop reaches over HTTP, with a memory of its own.

``python -m sandbox --port 8001``. It knows nothing of the shop.
"""
