"""Where processes of one machine meet."""

import socket

import pytest


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    try:
        with socket.socket() as s:
            s.bind(("localhost", 0))
            return s.getsockname()[1]
    except OSError as problem:
        pytest.skip(f"processes cannot meet: no sockets here ({problem})")
