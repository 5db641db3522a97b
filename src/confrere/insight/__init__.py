"""Insight: what silos can learn about one another and about their own data, before and after training.

The public names are listed in `__init__.pyi` and imported when first used, so that one room does not load the others.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
