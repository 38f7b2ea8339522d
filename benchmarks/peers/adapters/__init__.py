"""How each library is put around the probes' views, as its own documentation does it.

An adapter is a module with:

- ``NAME``, for the table;
- ``REQUIREMENTS``, what its environment holds; empty for those that run in ours;
- ``configure(settings)``, which changes the settings, given as a dict;
- ``view(make)``, which returns a view; ``make`` makes one, with the given mixins before it.
"""
