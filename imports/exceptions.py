"""What an import can say instead of going on.

ImportStopped     somebody cancelled it, or it has ended: the chunk is rolled back
ImportHasEnded    it cannot be cancelled any more
"""


class ImportStopped(Exception):
    """Somebody else has ended the import; what this chunk wrote is rolled back."""


class ImportHasEnded(Exception):
    """It is done or has failed: there is nothing to cancel."""

    code = "invalid_transition"
