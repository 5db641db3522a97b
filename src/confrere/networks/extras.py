"""Libraries that only some functions need: they are imported when used, and their absence says what to install."""

import importlib
from typing import Any


def needed(module: str, by: str) -> Any:
    """A module of an extra."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as problem:
        library = "scikit-learn" if module.startswith("sklearn") else module
        raise ImportError(f"{by} needs {library}: pip install 'confrere[networks]'") from problem
