"""Mixers: what happens between silos, from their messages to their next inbox."""

from confrere.mixers.bulletin import bulletin
from confrere.mixers.mailbox import delayed, mailbox
from confrere.mixers.parts import add, replace, step, table, tempered
from confrere.mixers.peers import exchange, peers
from confrere.mixers.server import alone, server

__all__ = [
    "add",
    "alone",
    "bulletin",
    "delayed",
    "exchange",
    "mailbox",
    "peers",
    "replace",
    "server",
    "step",
    "table",
    "tempered",
]
