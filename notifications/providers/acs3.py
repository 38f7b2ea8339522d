"""How Alibaba Cloud wants requests signed: ACS3-HMAC-SHA256, without a body.

https://help.aliyun.com/zh/sdk/product-overview/v3-request-structure-and-signature
"""

import hmac
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final
from urllib.parse import quote

ALGORITHM: Final = "ACS3-HMAC-SHA256"
NO_BODY: Final = sha256(b"").hexdigest()


@dataclass(frozen=True, kw_only=True)
class Signature:
    """The keys of one account, for one version of one service."""

    key_id: str
    secret: str
    version: str

    def headers(
        self,
        *,
        action: str,
        host: str,
        query: Mapping[str, str],
        now: datetime | None = None,
        nonce: str = "",
    ) -> dict[str, str]:
        """Return the headers of a signed ``POST /`` with this query."""
        signed = {
            "host": host,
            "x-acs-action": action,
            "x-acs-content-sha256": NO_BODY,
            "x-acs-date": (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "x-acs-signature-nonce": nonce or uuid.uuid4().hex,
            "x-acs-version": self.version,
        }
        return {**signed, "authorization": self.authorization(query, signed)}

    def authorization(self, query: Mapping[str, str], signed: Mapping[str, str]) -> str:
        """Return the header that signs a query and headers, which have lower-case names."""
        names = ";".join(sorted(signed))
        request = "\n".join(
            [
                "POST",
                "/",
                "&".join(
                    f"{quote(name, safe='~')}={quote(value, safe='~')}"
                    for name, value in sorted(query.items())
                ),
                *(f"{name}:{value}" for name, value in sorted(signed.items())),
                "",
                names,
                NO_BODY,
            ]
        )
        text = f"{ALGORITHM}\n{sha256(request.encode()).hexdigest()}"
        signature = hmac.new(self.secret.encode(), text.encode(), sha256).hexdigest()
        return f"{ALGORITHM} Credential={self.key_id},SignedHeaders={names},Signature={signature}"
