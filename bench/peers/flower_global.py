"""Flower's simulation with a client that keeps its data in a global variable, as one would write it at first.

A worker gets a fresh copy of the client with every message, and with it an empty global: the data of all silos are made
anew each time. `flower.py` has the better client, which keeps them in a module.
"""

import flower

from tasks import Task, make_data

KEPT = {}


def kept_data(task: Task):
    """The data of all silos, kept in this script's global."""
    if task not in KEPT:
        KEPT[task] = make_data.__wrapped__(task)
    return KEPT[task]


if __name__ == "__main__":
    flower.main("flower_global", kept_data)
