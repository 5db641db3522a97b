"""Recipes: algorithms without their model and with their numbers still open, which is what public functions return."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

from confrere.core import Algorithm, Client, Loss, federate


class Compression(Protocol):
    """How messages are compressed: see `confrere.transforms`."""

    def wrap(self, client: Client, models: bool) -> Client:
        """The client that sends less; `models`: its messages are models, not steps."""
        ...


class Bound(NamedTuple):
    """A maker with its static arguments bound: equal if both are, so that compiled programs are found again.

    `whole`: the maker wants the whole model, not its loss alone (methods that need the curvature of a linear model).
    Makers know nothing of a prior, nor of compressed messages: both are heeded here, for all of them.
    """

    maker: Callable[..., Algorithm]
    static: tuple[tuple[str, Hashable], ...]
    whole: bool = False
    compression: Compression | None = None

    def __call__(self, loss: Loss, prior: Any = None, **hyper: Any) -> Algorithm:
        made = self.maker(loss, **dict(self.static), **hyper)
        if self.compression is not None and made.mixer.sends:
            client = self.compression.wrap(made.client, made.mixer.models)
            return federate(client, made.mixer, prior)
        return made if prior is None else federate(made.client, made.mixer, prior)

    def on(self, model: Any, **hyper: Any) -> Algorithm:
        """The algorithm for a model."""
        return self(model if self.whole else model.loss, **hyper)


class Recipe(NamedTuple):
    """An algorithm without its model and with its numbers still open.

    `make(loss, **hyper) -> Algorithm` is called by a host inside the traced function, with the model's loss
    and the numeric hyper-parameters traced: another learning rate does not recompile, a grid is a `vmap`.
    """

    make: Callable[..., Algorithm]
    static: Mapping[str, Hashable]
    hyper: Mapping[str, Any]
    name: str = "custom"
    rounds: int | None = None  # how many are enough, where that is known

    @classmethod
    def of(
        cls,
        maker: Callable[..., Algorithm],
        name: str,
        static: Mapping[str, Hashable],
        whole: bool = False,
        **hyper: Any,
    ) -> "Recipe":
        """A recipe from `maker(loss, **static, **hyper)`; a hyper-parameter that is None is left out."""
        numbers = {k: v for k, v in hyper.items() if v is not None}
        return cls(Bound(maker, tuple(sorted(static.items())), whole), dict(static), numbers, name)

    @property
    def bound(self) -> Bound:
        """The maker, also of a recipe that was made from a plain function."""
        return self.make if isinstance(self.make, Bound) else Bound(self.make, ())

    def replace(self, **hyper: Any) -> "Recipe":
        """The same recipe with other numbers."""
        unknown = sorted(set(hyper) - set(self.hyper))
        if unknown:
            raise TypeError(f"{self.name} has no hyper-parameter {', '.join(unknown)}; it has {', '.join(self.hyper)}")
        return self._replace(hyper={**self.hyper, **hyper})

    def with_prior(self, prior: Any) -> "Recipe":
        """The same recipe with a prior on silos: a selection, numbers by name, or one per silo; None takes it away."""
        others = {k: v for k, v in self.hyper.items() if k != "prior"}
        return self._replace(hyper=others if prior is None else {**others, "prior": prior})

    def compressed(self, compression: Compression | None) -> "Recipe":
        """The same recipe with compressed messages, as by `transforms.top_k(0.1)`; None leaves them as they are.

        What is received stays whole. Where nothing is sent (training alone), nothing changes.
        """
        if compression is None:
            return self
        if not callable(getattr(compression, "wrap", None)):
            raise TypeError(f"a compression is what e.g. confrere.transforms.top_k(0.1) returns, not {compression!r}")
        if self.bound.compression is not None:
            raise ValueError(f"the messages of {self.name} are compressed already")
        return self._replace(
            make=self.bound._replace(compression=compression), static={**self.static, "compress": str(compression)},
            name=f"{self.name} ({compression})",
        )  # fmt: skip
