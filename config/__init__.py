"""Puts the apps together; the only package that knows all of them."""

from importlib.util import find_spec

if not find_spec("MySQLdb") and find_spec("pymysql"):
    import pymysql

    pymysql.install_as_MySQLdb()  # a driver without a compiler; mysqlclient is taken where it is installed

from .celery import app as celery_app  # what shared tasks and senders find

__all__ = ["celery_app"]
