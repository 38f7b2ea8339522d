"""The sample shop's settings; what differs between two places is read from the environment.

``DEBUG``            off; ``manage.py`` turns it on where there is no ``SECRET_KEY``
``SECRET_KEY``       required unless ``DEBUG`` is on
``ALLOWED_HOSTS``    comma-separated
``CSRF_TRUSTED_ORIGINS``  comma-separated, such as ``https://shop.example``
``DATABASE_URL``     ``postgresql://…``, ``mysql://…`` or ``sqlite:///…``; by default ``var/demo.sqlite3``
``ATOMIC_REQUESTS``  off; whether each request is one transaction
``REDIS_URL``        the cache; by default each process has its own memory
``THROTTLE_RATE``    requests of one user, ``3000/minute``; empty for no limit; without Redis each process
                     counts for itself
``PAYMENTS_LEASE``   seconds that a payment holds its order unattended, 30; more than the provider's timeouts
``PAYMENTS_CONNECT_TIMEOUT``  seconds until a provider is unreachable, 2
``PAYMENTS_READ_TIMEOUT``     seconds until a provider is silent, 10
``PAYMENTS_CALLBACK_TOLERANCE``  seconds that a callback's time stamp may be away, 300
``STRIPE_WEBHOOK_SECRETS``  comma-separated: two while one is rotated
``STRIPE_LIVEMODE``  whose events are ours: on, unless ``DEBUG`` is
``ALIPAY_PUBLIC_KEYS``  Alipay's, comma-separated; ``ALIPAY_APP_ID``, ``ALIPAY_SELLER_ID``: who we are there
``WECHAT_PLATFORM_KEYS``  ``serial=key,…``: the platform's public keys (or certificates) by serial
``WECHAT_API_KEYS``  our APIv3 keys of 32 characters; ``WECHAT_MCHID``, ``WECHAT_APPID``: who we are there
``SANDBOX_URL``      where the sandbox provider is, ``http://127.0.0.1:8001``
``DEMO_PAUSES``      set by the demo for its own server, see ``shop/pauses.py``
"""

from datetime import timedelta
from pathlib import Path

import environ
from django.utils.translation import gettext_lazy as _

from .databases import database

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = (
    env.str("SECRET_KEY", default="not a secret: for this checkout only") if DEBUG else env.str("SECRET_KEY")
)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["*"] if DEBUG else [])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
DEMO_PAUSES = env.str("DEMO_PAUSES", default="") if DEBUG else ""

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

INSTALLED_APPS = [
    "whitenoise.runserver_nostatic",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "rest_framework.authtoken",
    "idempotency",
    "stock",
    "orders",
    "payments",
    "demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": {
        **database(env.str("DATABASE_URL", default="") or "sqlite:///var/demo.sqlite3", base=BASE_DIR),
        "ATOMIC_REQUESTS": env.bool("ATOMIC_REQUESTS", default=False),
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

if REDIS_URL := env.str("REDIS_URL", default=""):
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

SANDBOX_URL = env.str("SANDBOX_URL", default="http://127.0.0.1:8001")
PAYMENTS_LEASE = timedelta(seconds=env.float("PAYMENTS_LEASE", default=30))
PAYMENTS_CONNECT_TIMEOUT = timedelta(seconds=env.float("PAYMENTS_CONNECT_TIMEOUT", default=2))
PAYMENTS_READ_TIMEOUT = timedelta(seconds=env.float("PAYMENTS_READ_TIMEOUT", default=10))
PAYMENTS_METHODS = {"alipay": "alipay", "wechat": "wechat", "card": "stripe", "stripe": "stripe"}
PAYMENTS_PROVIDERS = {name: f"payments.providers.sandbox.{name}" for name in ("alipay", "wechat", "stripe")}
PAYMENTS_CALLBACK_TOLERANCE = timedelta(seconds=env.float("PAYMENTS_CALLBACK_TOLERANCE", default=300))
PAYMENTS_CALLBACKS = {  # without a secret or key every callback is refused
    "alipay": {
        "public_keys": env.list("ALIPAY_PUBLIC_KEYS", default=[]),
        "app_id": env.str("ALIPAY_APP_ID", default=""),
        "seller_id": env.str("ALIPAY_SELLER_ID", default=""),
    },
    "stripe": {
        "secrets": env.list("STRIPE_WEBHOOK_SECRETS", default=[]),
        "livemode": env.bool("STRIPE_LIVEMODE", default=not DEBUG),
    },
    "wechat": {
        "platform_keys": env.dict("WECHAT_PLATFORM_KEYS", default={}),
        "api_keys": env.list("WECHAT_API_KEYS", default=[]),
        "mchid": env.str("WECHAT_MCHID", default=""),
        "appid": env.str("WECHAT_APPID", default=""),
    },
}

USE_TZ = True
TIME_ZONE = "Asia/Shanghai"
LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "config" / "locale"]

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True  # straight from the apps: no collectstatic to forget

SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEBUG
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["shop.parsers.JSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": env.str("THROTTLE_RATE", default="3000/minute") or None},
    "EXCEPTION_HANDLER": "config.problems.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
