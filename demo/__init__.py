"""The start page, the demo's data and the walk through the scenarios: above all sample apps, below ``config``."""
