"""Owns the import of litellm: once, late, and without what it does on its own."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any


@cache
def load_litellm() -> Any:
    """litellm, imported once, without its network fetches, `.env` reading, callbacks and notices."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    warnings.filterwarnings("ignore", message="Item '.*' on TypedDict class 'ChatCompletion")
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.disable_aiohttp_transport = True
    litellm.drop_params = False
    litellm.num_retries = 0
    litellm.callbacks = []
    return litellm
