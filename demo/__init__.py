"""The start page, the demo's data and the walk through the scenarios: it knows all sample apps."""
