"""Asks an endpoint for its list of models: the cheapest question that tells a wrong key or address from a right one."""

from __future__ import annotations

import logging
import time
from urllib.parse import urlsplit

import openai
from pydantic import BaseModel, ValidationError

from kernelblaster.config import ModelConfig
from kernelblaster.models.base import RequestRejected
from kernelblaster.models.endpoint import endpoint_of
from kernelblaster.models.faults import Again, sdk_fault
from kernelblaster.models.openai_api import key_of, scrubbed
from kernelblaster.models.prices import OPENAI_HOST

TIMEOUT_S = 20.0
RETRIES = 2
"""After a connection that failed; a local server may just be starting."""
WAIT_S = 1.0
_SHOWN = 5
_log = logging.getLogger(__name__)


class _Model(BaseModel):
    id: str


class _Listing(BaseModel):
    data: list[_Model]


def offered_models(config: ModelConfig, *, retries: int = RETRIES) -> frozenset[str] | None:
    """Names of the models that the endpoint lists; None when it answers something else, as many servers do.

    Raises BadKey when the key is refused, Unreachable when nobody answers. A key that may ask for completions but not
    for the list (403) is no bad key.
    """
    key = key_of(config)
    with openai.OpenAI(api_key=key, base_url=config.base_url, timeout=TIMEOUT_S, max_retries=0) as client:
        for left in range(retries, -1, -1):
            try:
                return _names(client.models.with_raw_response.list().content)
            except openai.APITimeoutError:
                return None
            except (openai.AuthenticationError, openai.APIConnectionError) as error:
                fault = sdk_fault(error, endpoint_of(config), lambda said: scrubbed(config, said))
                if fault.again is Again.NEVER or not left:
                    raise fault.error from None
                time.sleep(WAIT_S)
            except openai.OpenAIError:
                return None
    return None


def _names(body: bytes) -> frozenset[str] | None:
    try:
        return frozenset(model.id for model in _Listing.model_validate_json(body).data)
    except ValidationError:
        return None


def check_model(config: ModelConfig) -> None:
    """Refuse an endpoint that cannot be used, before time is spent on anything else.

    A name that is missing from the list is refused where the list is complete, at OpenAI; other servers know aliases.
    Raises BadKey, Unreachable, RequestRejected.
    """
    offered = offered_models(config)
    if not offered or config.name in offered:
        return
    shown = ", ".join(sorted(offered)[:_SHOWN]) + (", ..." if len(offered) > _SHOWN else "")
    missing = f"{endpoint_of(config)} does not list the model {config.name}: it has {shown}"
    if urlsplit(endpoint_of(config)).hostname == OPENAI_HOST:
        raise RequestRejected(missing, hint="give --model NAME or set MODEL")
    _log.warning("%s", missing)
