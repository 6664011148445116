"""Where an endpoint is, checked and fit to be shown. Imports no SDK, so that a wrong address is noticed at once."""

from __future__ import annotations

from urllib.parse import urlsplit

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError
from kernelblaster.models.prices import OPENAI_HOST

OPENAI_URL = f"https://{OPENAI_HOST}/v1"


def endpoint_of(config: ModelConfig) -> str:
    """Scheme, host and path of the base URL, without credentials or query. Raises UsageError when it is no URL."""
    try:
        parts = urlsplit(config.base_url or OPENAI_URL)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise _no_url(str(error)) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _no_url("it does not begin with http:// or https:// and a host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _no_url(why: str) -> UsageError:
    return UsageError(
        f"the base URL of the model cannot be used: {why}",
        hint="give OPENAI_BASE_URL or --base-url such as http://localhost:8000/v1",
    )
