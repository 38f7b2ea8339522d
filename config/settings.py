"""The sample shop's settings; what differs between two places is read from the environment.

``DEBUG``            off; ``manage.py`` turns it on where there is no ``SECRET_KEY``
``SECRET_KEY``       required unless ``DEBUG`` is on
``ALLOWED_HOSTS``    comma-separated
``CSRF_TRUSTED_ORIGINS``  comma-separated, such as ``https://shop.example``
``DATABASE_URL``     ``postgresql://…``, ``mysql://…`` or ``sqlite:///…``; by default ``var/demo.sqlite3``
``ATOMIC_REQUESTS``  off; whether each request is one transaction
``REDIS_URL``        the cache; by default each process has its own memory
``REPLAY_CACHE``     on; whether repeats are answered from the cache
``BROKER_URL``       where messages go: ``amqp://…`` or ``redis://…``; by default the process's own memory,
                     where only a worker in the same process (the demo's) finds them
``BROKER_VISIBILITY_TIMEOUT``  seconds after which Redis hands a message that is still being worked on to
                     another worker, 900; longer than the longest task, or that one waits in vain
``OUTBOX_LEASE``     seconds that a relay holds its messages unattended, 30
``RESULT_BACKEND``   where Celery keeps results; by default nowhere: the records have them
``THROTTLE_RATE``    requests of one user, ``3000/minute``; empty for no limit; without Redis each process
                     counts for itself
``STOCK_STRATEGY``   how rivals for one article are told apart: ``conditional``, ``optimistic`` or ``locked``
``FLASH_GATE_URL``   the Redis server with the gates of flash sales, ``REDIS_URL``; empty: the database alone,
                     correct and slower
``FLASH_GATE_TIMEOUT``     seconds that a request waits for a gate, 0.25
``FLASH_ADMISSION_PATIENCE``  seconds that a gate keeps a unit for a request that does not end, 60
``FLASH_QUEUE_PATIENCE``   seconds after which a ticket without an order is announced again, 300
``PAYMENTS_LEASE``   seconds that a payment holds its order unattended, 30; more than the provider's timeouts
``PAYMENTS_CONNECT_TIMEOUT``  seconds until a provider is unreachable, 2
``PAYMENTS_READ_TIMEOUT``     seconds until a provider is silent, 10
``PAYMENTS_CALLBACK_TOLERANCE``  seconds that a callback's time stamp may be away, 300
``PAYMENTS_NOTICE_RETENTION``  days that the content of a settled callback is kept, 180: long enough for a
                     dispute; ``manage.py purge_notices`` empties what is older
``STRIPE_WEBHOOK_SECRETS``  comma-separated: two while one is rotated
``STRIPE_LIVEMODE``  whose events are ours: on, unless ``DEBUG`` is
``ALIPAY_PUBLIC_KEYS``  Alipay's, comma-separated; ``ALIPAY_APP_ID``, ``ALIPAY_SELLER_ID``: who we are there
``WECHAT_PLATFORM_KEYS``  ``serial=key,…``: the platform's public keys (or certificates) by serial
``WECHAT_API_KEYS``  our APIv3 keys of 32 characters; ``WECHAT_MCHID``, ``WECHAT_APPID``: who we are there
``NOTIFICATIONS_LEASE``  seconds that a text is being sent unattended, 30; more than the provider's timeouts
``NOTIFICATIONS_CONNECT_TIMEOUT``  seconds until the provider of texts is unreachable, 2
``NOTIFICATIONS_READ_TIMEOUT``     seconds until it is silent, 10
``NOTIFICATIONS_WAIT``    seconds that a repeat waits for the first's outcome, 5
``NOTIFICATIONS_WINDOW``  seconds in which a verification code is not sent again, 60
``NOTIFICATIONS_UNKNOWN_AGE``  days after which a provider is no longer asked what became of a message, 3
``NOTIFICATIONS_REGION``  the country of telephone numbers without one, ``CN``
``SMS_PROVIDER``     ``sandbox``, ``aliyun`` or ``twilio``, see ``docs/sms.md`` for the account's variables
``EMAIL_HOST``       where mails go; also ``EMAIL_PORT``, ``EMAIL_HOST_USER``, ``EMAIL_HOST_PASSWORD``,
                     ``EMAIL_USE_TLS``, ``DEFAULT_FROM_EMAIL``; with ``DEBUG`` and no host they are printed
``IMPORTS_DIR``      where uploaded files wait, ``var/imports``; web servers and workers need the same one
``IMPORTS_LEASE``    seconds that an import is held unattended, 120; more than IMPORTS_MAX_SECONDS
``IMPORTS_MAX_SECONDS``  how long reading a file may take, 60
``IMPORTS_AT_ONCE``  lines up to which a file is imported before the answer, 1000
``IMPORTS_CHUNK``    lines that are committed together, 500
``IMPORTS_FINDINGS`` rejected lines of a file whose reasons are kept, 10000
``SANDBOX_URL``      where the sandbox provider is, ``http://127.0.0.1:8001``
``DEMO_PAUSES``      set by the demo for its own server, see ``shop/pauses.py``
"""

from datetime import timedelta
from pathlib import Path

import environ
from django.utils.translation import gettext_lazy as _

from .caches import cache
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
    "notifications",
    "rewards",
    "flashsales",
    "imports",
    "demo",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "config.charsets.CharsetMiddleware",
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

REDIS_URL = env.str("REDIS_URL", default="")
CACHES = {"default": cache(REDIS_URL)}

BROKER_URL = env.str("BROKER_URL", default="")
HAS_BROKER = bool(BROKER_URL)
CELERY_BROKER_URL = BROKER_URL or "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "confirm_publish": True,  # AMQP: a message that steps aside is safe before it is acknowledged
    "visibility_timeout": env.float("BROKER_VISIBILITY_TIMEOUT", default=900),  # Redis, as what follows
    "unacked_mutex_expire": 60,  # a worker killed while it gives messages back holds the others up so long
    "socket_connect_timeout": 3,
    "socket_timeout": 10,
    "socket_keepalive": True,
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_RESULT_BACKEND = env.str("RESULT_BACKEND", default="") or None
CELERY_TASK_IGNORE_RESULT = CELERY_RESULT_BACKEND is None
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = (
    1  # a message waits for a free worker in the queue, not behind a slow task
)
CELERY_BEAT_SCHEDULE = {
    # Sent twice, by two beats say, each does no harm: whatever it works on is claimed. One that no worker
    # took before the next is due is dropped.
    name: {"task": name, "schedule": every, "options": {"expires": every.total_seconds()}}
    for name, every in {
        "idempotency.relay": timedelta(seconds=5),
        "idempotency.purge": timedelta(hours=1),
        "payments.reconcile": timedelta(minutes=1),
        "notifications.reconcile": timedelta(minutes=1),
        "imports.go_on": timedelta(minutes=1),
        "flashsales.reconcile": timedelta(minutes=1),
    }.items()
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]

STOCK_STRATEGY = env.str("STOCK_STRATEGY", default="conditional")

FLASH_GATE_URL = env.str("FLASH_GATE_URL", default=REDIS_URL)
FLASH_GATE_TIMEOUT = timedelta(seconds=env.float("FLASH_GATE_TIMEOUT", default=0.25))
FLASH_ADMISSION_PATIENCE = timedelta(seconds=env.float("FLASH_ADMISSION_PATIENCE", default=60))
FLASH_QUEUE_PATIENCE = timedelta(seconds=env.float("FLASH_QUEUE_PATIENCE", default=300))

SANDBOX_URL = env.str("SANDBOX_URL", default="http://127.0.0.1:8001")
PAYMENTS_LEASE = timedelta(seconds=env.float("PAYMENTS_LEASE", default=30))
PAYMENTS_CONNECT_TIMEOUT = timedelta(seconds=env.float("PAYMENTS_CONNECT_TIMEOUT", default=2))
PAYMENTS_READ_TIMEOUT = timedelta(seconds=env.float("PAYMENTS_READ_TIMEOUT", default=10))
PAYMENTS_METHODS = {"alipay": "alipay", "wechat": "wechat", "card": "stripe", "stripe": "stripe"}
PAYMENTS_PROVIDERS = {name: f"payments.providers.sandbox.{name}" for name in ("alipay", "wechat", "stripe")}
PAYMENTS_CALLBACK_TOLERANCE = timedelta(seconds=env.float("PAYMENTS_CALLBACK_TOLERANCE", default=300))
PAYMENTS_NOTICE_RETENTION = timedelta(days=env.float("PAYMENTS_NOTICE_RETENTION", default=180))
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

NOTIFICATIONS_LEASE = timedelta(seconds=env.float("NOTIFICATIONS_LEASE", default=30))
NOTIFICATIONS_CONNECT_TIMEOUT = timedelta(seconds=env.float("NOTIFICATIONS_CONNECT_TIMEOUT", default=2))
NOTIFICATIONS_READ_TIMEOUT = timedelta(seconds=env.float("NOTIFICATIONS_READ_TIMEOUT", default=10))
NOTIFICATIONS_WAIT = timedelta(seconds=env.float("NOTIFICATIONS_WAIT", default=5))
NOTIFICATIONS_WINDOW = timedelta(seconds=env.float("NOTIFICATIONS_WINDOW", default=60))
NOTIFICATIONS_UNKNOWN_AGE = timedelta(days=env.float("NOTIFICATIONS_UNKNOWN_AGE", default=3))
NOTIFICATIONS_REGION = env.str("NOTIFICATIONS_REGION", default="CN")
SMS_PROVIDER = env.str("SMS_PROVIDER", default="sandbox")
NOTIFICATIONS_PROVIDERS = {
    "sms": f"notifications.providers.{SMS_PROVIDER}.{SMS_PROVIDER.capitalize()}",
    "email": "notifications.providers.mail.Mail",
}
ALIYUN_SMS = {
    "endpoint": env.str("ALIYUN_SMS_ENDPOINT", default="https://dysmsapi.aliyuncs.com"),
    "access_key_id": env.str("ALIYUN_ACCESS_KEY_ID", default=""),
    "access_key_secret": env.str("ALIYUN_ACCESS_KEY_SECRET", default=""),
    "sign_name": env.str("ALIYUN_SMS_SIGN_NAME", default=""),
}
TWILIO = {
    "endpoint": env.str("TWILIO_ENDPOINT", default="https://api.twilio.com"),
    "account_sid": env.str("TWILIO_ACCOUNT_SID", default=""),
    "auth_token": env.str("TWILIO_AUTH_TOKEN", default=""),
    "from_number": env.str("TWILIO_FROM_NUMBER", default=""),
}

MAILERS = {  # Django 6.1 and later read it themselves; for the others notifications/providers/mail.py does
    "default": {"BACKEND": "django.core.mail.backends.console.EmailBackend"}
    if DEBUG and not env.str("EMAIL_HOST", default="")
    else {
        "BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "OPTIONS": {
            "host": env.str("EMAIL_HOST", default="") or "localhost",
            "port": env.int("EMAIL_PORT", default=25),
            "username": env.str("EMAIL_HOST_USER", default=""),
            "password": env.str("EMAIL_HOST_PASSWORD", default=""),
            "use_tls": env.bool("EMAIL_USE_TLS", default=False),
            "timeout": NOTIFICATIONS_READ_TIMEOUT.total_seconds(),
        },
    }
}
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="shop@localhost")

IDEMPOTENCY_CACHE = "default" if env.bool("REPLAY_CACHE", default=True) else None

REWARDS_CAMPAIGN = "first-tea"

IMPORTS_DIR = Path(env.str("IMPORTS_DIR", default="") or BASE_DIR / "var" / "imports")
IMPORTS_LEASE = timedelta(seconds=env.float("IMPORTS_LEASE", default=120))
IMPORTS_MAX_SECONDS = env.int("IMPORTS_MAX_SECONDS", default=60)
IMPORTS_AT_ONCE = env.int("IMPORTS_AT_ONCE", default=1000)
IMPORTS_CHUNK = env.int("IMPORTS_CHUNK", default=500)
IMPORTS_FINDINGS = env.int("IMPORTS_FINDINGS", default=10_000)

IDEMPOTENCY_OUTBOX_SENDER = "idempotency.celery.send" if HAS_BROKER else "demo.worker.send"
IDEMPOTENCY_OUTBOX_RELAY_ON_COMMIT = HAS_BROKER  # else only the demo's worker can
IDEMPOTENCY_OUTBOX_LEASE = timedelta(seconds=env.float("OUTBOX_LEASE", default=30))
IDEMPOTENCY_OUTBOX_MAX_ATTEMPTS = 10 if HAS_BROKER else 1000  # the demo's worker counts long tasks as one
IDEMPOTENCY_OUTBOX_ROUTES = {
    "orders.paid": [
        "notifications.send_receipt_sms",
        "notifications.send_receipt_mail",
        "rewards.grant_coupon",
        "rewards.add_points",
    ],
    "orders.refunded": ["rewards.take_points_back"],
    "imports.queued": ["imports.run"],
    "flashsales.admitted": ["flashsales.create_order"],
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
    "DEFAULT_THROTTLE_CLASSES": ["shop.throttles.UserRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"user": env.str("THROTTLE_RATE", default="3000/minute") or None},
    "EXCEPTION_HANDLER": "config.problems.exception_handler",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
