"""Loops whose models run away say so, with a learning rate that converges."""

import jax.numpy as jnp
import numpy as np
import pytest

from confrere import networks as nets
from confrere.networks import GTVMin, bounds
from tests.network_problems import problem

LOOPS = {
    "fedgd": lambda p, lr: nets.fedgd(p, lr=lr, iterations=3000),
    "fedsgd": lambda p, lr: nets.fedsgd(p, lr=lr, batch=50, iterations=3000),
    "async": lambda p, lr: nets.async_fedgd(p, lr=lr, activation=0.7, delay=2, iterations=3000),
    "faulty": lambda p, lr: nets.faulty_fedgd(p, lr=lr, links=0.1, iterations=3000),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_diverge_name_the_learning_rate_and_one_that_converges(name):
    p = problem()
    with pytest.warns(UserWarning, match=r"from iteration \d+: the learning rate of 5 is too large; gradient") as told:
        h = LOOPS[name](p, 5.0)
    assert not np.isfinite(h.W).all()
    rate = float(str(told[0].message).split("converge with ")[1].split(",")[0])
    np.testing.assert_allclose(rate, (0.5 if name == "async" else 1) / bounds.upper_eigenvalue(p), rtol=1e-2)
    converged = LOOPS[name](p, rate)  # without a warning, which would be an error here
    assert converged.objective[-1] < converged.objective[0]


def test_the_iteration_is_the_first_whose_objective_is_not_finite():
    with pytest.warns(UserWarning, match="models diverge") as told:
        h = nets.fedgd(problem(), lr=5.0, iterations=300)
    first = int(np.isfinite(h.objective).argmin()) + 1
    assert f"from iteration {first}:" in str(told[0].message)


def test_other_losses_and_accelerated_steps_that_diverge_say_what_to_do():
    p = problem()
    X, y = p.rows
    losses = [lambda w, a=a, b=b: jnp.mean((b - a @ w) ** 2) for a, b in zip(X, y, strict=True)]
    with pytest.warns(UserWarning, match="the learning rate of 5 is too large; give a smaller one"):
        nets.fedgd(GTVMin(p.network, losses, alpha=0.7), lr=5.0, iterations=300, start=np.zeros((6, 3)))
    with pytest.warns(UserWarning, match=r"the largest eigenvalue is above 0\.1; give a bound"):
        nets.accelerated_fedgd(p, iterations=300, eigenvalues=(0.01, 0.1))
