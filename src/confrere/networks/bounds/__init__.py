"""The book's bounds as functions, with what is right where it errs."""

from confrere.networks.bounds.coupled import (
    Curvature,
    cluster_bound,
    connectivity_bound,
    curvature,
    estimation_bound,
    lower_eigenvalue,
    mean_error_bound,
    sensitivity_bound,
    spread_bound,
    tight_sensitivity_bound,
    upper_eigenvalue,
    variation_bound,
)
from confrere.networks.bounds.regression import mean_bound, prox_as_rows, regression_bound, regression_error
from confrere.networks.bounds.steps import best_rate, contraction, iterations_needed, perturbed_bound

__all__ = [
    "Curvature",
    "best_rate",
    "cluster_bound",
    "connectivity_bound",
    "contraction",
    "curvature",
    "estimation_bound",
    "iterations_needed",
    "lower_eigenvalue",
    "mean_bound",
    "mean_error_bound",
    "perturbed_bound",
    "prox_as_rows",
    "regression_bound",
    "regression_error",
    "sensitivity_bound",
    "spread_bound",
    "tight_sensitivity_bound",
    "upper_eigenvalue",
    "variation_bound",
]
