"""Migrate and make two users with a token and a session each; prints them as JSON.

Runs in the peer's environment.
"""

import json

import django


def main() -> None:
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps({name: credentials(name) for name in ("alice", "bob")}))


def credentials(name: str) -> dict[str, str]:
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.db import SessionStore
    from rest_framework.authtoken.models import Token

    user = User.objects.create(username=name)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return {"token": Token.objects.create(user=user).key, "session": session.session_key}


if __name__ == "__main__":
    main()
