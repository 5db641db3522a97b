"""confrere: personalised collaborative learning.

Silos train models together, no row leaves its silo, and each ends with the model that is best for its own population.
The public names are listed in `__init__.pyi` and imported when first used, so that `import confrere` is quick.
"""

import lazy_loader

from confrere._version import __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
