"""A personal model on disk: its parameters, what it expects of rows, what it rests on, and how rows looked then."""

from confrere.saved.drift import Drift, drift
from confrere.saved.folder import Saved, load_model, save_model

__all__ = ["Drift", "Saved", "drift", "load_model", "save_model"]
