"""What all silos tell for the measures asked for, each from its own rows, and the distances that follow."""

from dataclasses import dataclass, field

import numpy as np

from confrere.data.silos import Silos
from confrere.insight.similarity import summaries
from confrere.insight.similarity.common_set import synthetic_rows
from confrere.insight.similarity.fitting import ROUNDS, common_run, fits
from confrere.insight.similarity.measured import Measured, Norm, around, pairwise, upper
from confrere.insight.similarity.measures import (
    RESAMPLED,
    euclidean,
    mean_variation,
    measure_of,
    rounds_over,
    spreads_over,
    variation,
)
from confrere.insight.similarity.own import NUMBER, Told, counts_of, secret, told
from confrere.selection.linear import Linear
from confrere.selection.selection import Crossing

BLOCKS = ("models", "gradients", "outcomes", "features", "predictions")  # told by each silo as a vector


@dataclass
class Telling:
    """The silos that take part, and what each tells: blocks of one vector, and how all of it varies together."""

    silos: Silos
    data: Linear
    who: list[str]  # in the order of the silos
    least: int
    resamples: int
    seed: int
    common: np.ndarray | None
    common_rows: int
    values: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)  # block -> silo -> [1 + B, K]
    said: dict[str, dict[str, Told]] = field(default_factory=dict)
    offs: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)  # block -> silo -> [B, K]

    def __post_init__(self) -> None:
        sizes = dict(zip(self.silos.names, self.silos.sizes("train"), strict=True))
        self.counts = {n: counts_of(sizes[n], self.resamples, secret(self.seed, n, "rows")) for n in self.who}
        self.layout = summaries.layout_of(self.silos)
        self.rows = {n: self.silos[n].rows("train") for n in self.who}
        self.scale = np.ones(len(self.silos.feature_names))
        self.classes = self.silos.classes() if self.data.task == "classification" else 0

    def block(self, name: str) -> None:
        """Have every silo work out one block."""
        if name not in self.values:
            self.values[name] = dict(zip(self.who, getattr(self, name)(), strict=True))

    def models(self) -> list[np.ndarray]:
        """Every silo's own model."""
        place = self.silos.index
        return [fits(self.data.of(place(n)), self.counts[n], self.data.penalty, self.data.task) for n in self.who]

    def gradients(self) -> list[np.ndarray]:
        """Gradients in a short common run."""
        places = [self.silos.index(n) for n in self.who]
        return common_run(self.data, places, [self.counts[n] for n in self.who], ROUNDS)

    def outcomes(self) -> list[np.ndarray]:
        """Shares of classes; of amounts, mean and standard deviation."""
        if self.classes:
            return [summaries.class_shares(self.rows[n][1], self.counts[n], self.classes, self.least) for n in self.who]
        return [summaries.mean_and_spread(self.rows[n][1].astype(float), self.counts[n]) for n in self.who]

    def features(self) -> list[np.ndarray]:
        """Mean and standard deviation of every feature."""
        return [summaries.feature_summaries(self.rows[n][0], self.counts[n], self.layout, self.least) for n in self.who]

    def predictions(self) -> list[np.ndarray]:
        """Predictions of every silo's own model on the common set."""
        self.block("models")
        Z = np.column_stack([self.common_set(), np.ones(len(self.common_set()))])
        return [np.stack([self.predicted(Z, theta) for theta in self.values["models"][n]]) for n in self.who]

    def common_set(self) -> np.ndarray:
        """The rows that belong to nobody."""
        if self.common is None:
            self.block("features")
            mean, spread = self.pooled_features()
            rng = np.random.default_rng([self.seed, len(mean)])
            self.common = synthetic_rows(self.silos, self.layout, mean, spread, self.common_rows, rng)
        return self.common

    def predicted(self, Z: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """Probabilities (of two classes that of the second) or amounts [c * outputs]."""
        z = Z @ theta.reshape(Z.shape[1], -1)
        if self.data.task == "regression":
            return z[:, 0]
        if z.shape[1] == 1:
            return 1 / (1 + np.exp(-z[:, 0]))
        share = np.exp(z - z.max(axis=1, keepdims=True))
        return (share / share.sum(axis=1, keepdims=True)).reshape(-1)

    def pooled_features(self) -> tuple[np.ndarray, np.ndarray]:
        """The common mean and standard deviation of every feature."""
        vectors = np.stack([self.values["features"][n][0] for n in self.who])
        flags = self.layout.missing
        known = np.array([[len(X) if f < 0 else (X[:, f] == 0).sum() for f in flags] for X, _ in self.rows.values()])
        return summaries.pooled(vectors, known)

    def settle(self) -> None:
        """Each silo tells its blocks and their covariance; draws are made of that."""
        for n in self.who:
            names = [b for b in BLOCKS if b in self.values]
            if not names:
                return
            parts = [self.values[b][n] for b in names]
            whole = told(np.concatenate(parts, axis=1), [part.shape[1] for part in parts])
            off = whole.draws(self.resamples if len(whole.factors) else 0, secret(self.seed, n, "told"))
            off = off if len(off) else np.zeros((self.resamples, len(whole.vector)))
            start = 0
            for b in names:
                end = start + self.values[b][n].shape[1]
                self.said.setdefault(b, {})[n] = Told(whole.vector[start:end], whole.factors[:, start:end])
                self.offs.setdefault(b, {})[n] = off[:, start:end]
                start = end

    def measured(self, name: str) -> Measured:
        """The distances of one block."""
        found, n = measure_of(name, self.data.task), len(self.silos)
        width = len(next(iter(self.said[name].values())).vector)
        vectors, offs = np.full((n, width), np.nan), np.full((self.resamples, n, width), np.nan)
        for silo in self.who:
            vectors[self.silos.index(silo)] = self.said[name][silo].vector
            offs[:, self.silos.index(silo)] = self.offs[name][silo]
        norm = self.norm(name, vectors)
        matrix = pairwise(vectors, norm)
        gone = np.isnan(vectors)
        draws = np.array([pairwise(vectors + off, norm) for off in offs]).reshape(-1, n, n)
        noise = np.array([pairwise(np.where(gone, np.nan, off), norm) for off in offs]).reshape(-1, n, n)
        low, high = around(matrix, upper(noise), found.most)
        return Measured(
            name, found.title, found.unit, matrix, low, high, True, matrix, draws, noise, found.reveals, RESAMPLED,
            self.crossings(name), self.most_different(name, vectors),
        )  # fmt: skip

    def norm(self, name: str, vectors: np.ndarray) -> Norm:
        """How differences of one block are measured."""
        if name == "gradients":
            return rounds_over(vectors, ROUNDS)
        if name == "features":
            return spreads_over(self.pooled_features()[1])
        if name == "predictions":
            outputs = max(1, vectors.shape[1] // len(self.common_set()))
            return mean_variation(outputs, both=outputs == 1)
        return variation if name == "outcomes" and self.classes else euclidean

    def most_different(self, name: str, vectors: np.ndarray) -> np.ndarray | None:
        """Which feature adds most to a distance [n, n], -1 where none does; None where a block is not by feature."""
        d = len(self.silos.feature_names)
        if name == "features":
            parts = np.abs(vectors[:, None] - vectors[None]).reshape(len(vectors), len(vectors), d, 2)
            parts = np.square(parts / self.pooled_features()[1][:, None]).sum(axis=3)
        elif name == "models":
            width = vectors.shape[1] // (d + 1)
            parts = np.abs(vectors[:, None] - vectors[None])[:, :, : d * width]
            parts = parts.reshape(len(vectors), len(vectors), d, width).sum(axis=3)
        else:
            return None
        parts = np.nan_to_num(parts)
        return np.where(parts.max(axis=2) > 0, parts.argmax(axis=2), -1)

    def crossings(self, name: str) -> tuple[Crossing, ...]:
        """What every silo sends for a block, its variation included, and what it is told."""
        found = measure_of(name, self.data.task)
        extra = 0
        if name == "gradients":
            extra = NUMBER * ROUNDS * len(self.data.penalty)
        elif name == "predictions":
            extra = NUMBER * self.common_set().size
        labels = 3 if self.data.task == "regression" and name != "features" else 0  # rows, mean and spread of labels
        rows = NUMBER * (len(self.silos.feature_names) if name == "features" else 1 if name == "outcomes" else labels)
        varies = ", and how that varies" if self.resamples else ""
        return tuple(
            Crossing(
                n, f"{found.reveals}{varies}", rows + NUMBER * said.vector.size + NUMBER * said.factors.size, extra
            )
            for n, said in self.said[name].items()
        )
