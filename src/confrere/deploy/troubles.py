"""What sites say of their troubles, as the hub reads it: apart from answers, short, never taken for its own word."""

from typing import Any

from confrere.deploy.desk import MOST_WORDS
from confrere.deploy.exchange import ENGINES, Errors, Replies
from confrere.deploy.wire import Header, Refused, read_header


def apart(replies: Replies) -> tuple[Replies, Errors]:
    """Answers, and replies that say that something went wrong."""
    good: Replies = {}
    troubles: Errors = {}
    for site, content in replies.items():
        words = trouble_in(content)
        if words is None:
            good[site] = content
        else:
            troubles[site] = words
    return good, troubles


def trouble_in(content: bytes) -> str | None:
    """What went wrong at a site, if that is what its reply says."""
    try:
        return words_of(read_header(content))
    except Refused:
        return None  # whoever looks at it next will refuse it


def words_of(header: Header) -> str | None:
    """The words of a reply that says that something went wrong."""
    return in_its_words(header.facts.get("said", "an error")) if header.kind == "error" else None


def in_its_words(said: Any) -> str:
    """What a site says, cut short; what sounds like the engine's word on it is marked as its own.

    >>> in_its_words("its disk: full"), in_its_words("it cannot be reached")
    ('its disk: full', 'it says: it cannot be reached')
    """
    words = str(said)[:MOST_WORDS]
    return f"it says: {words}" if words.startswith(ENGINES) else words
