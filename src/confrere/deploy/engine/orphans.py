"""A job process whose parent was killed ends at once: a study has one hub and a site one desk, never two."""

import os
import threading
import time

LOOK = 0.5  # seconds


def end_with_parent() -> None:
    """End this process soon after its parent is gone.

    The kernel could do it, but would also do it when the mere thread of the parent ends that started this process.
    """
    threading.Thread(target=watch, args=(os.getppid(),), daemon=True).start()


def watch(parent: int) -> None:
    """Look now and then whether the parent is still there."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)
