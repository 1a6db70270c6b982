"""Tell open pages when the review has changed, by server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from hilander.explorer.session.explorer import Explorer

# Seconds between two looks at the review: a second tab follows without a visible delay.
_INTERVAL = 0.25
# Looks after which a comment is sent, so that a connection that is gone is noticed.
_LOOKS_PER_SIGN = 60


async def watch_review(explorer: Explorer) -> AsyncIterator[str]:
    """Yield an event now and after each change, until the explorer is stopping."""
    sent, looks = None, 0
    while not explorer.stopping.is_set():
        now = explorer.review.revision
        if now != sent:
            sent = now
            yield f"data: {json.dumps({'run': explorer.run.fingerprint, 'revision': now})}\n\n"
        elif looks % _LOOKS_PER_SIGN == 0:
            yield ": still here\n\n"
        looks += 1
        await asyncio.sleep(_INTERVAL)
