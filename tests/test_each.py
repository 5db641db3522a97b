"""Silos side by side, one after the other, and spread over devices: the same results."""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import confrere as cf
from confrere.core import Ctx
from confrere.each import mesh_for, one_by_one
from tests.helpers import two_class_silos

NETWORK = cf.models.mlp([4])


def test_one_by_one_is_vmap():
    def function(same, own, ctx):
        return {"sum": same["a"] + own, "round": ctx.round * ctx.size}

    arguments = ({"a": jnp.ones(2)}, jnp.arange(6.0).reshape(3, 2), Ctx(2, None, jnp.arange(3), None, None))
    axes = ({"a": None}, 0, Ctx(None, None, 0, None, None))
    jax.tree.map(
        np.testing.assert_array_equal, one_by_one(function, axes)(*arguments), jax.vmap(function, axes)(*arguments)
    )


@pytest.mark.parametrize("user", [None, 1])
def test_a_serial_model_is_trained_and_scored_like_any_other(user):
    silos = two_class_silos((20, 12, 8)).split(0.25, seed=1)
    recipe = cf.scaffold(lr=0.3, batch=4)
    side_by_side = cf.simulate(recipe, NETWORK, silos, rounds=3, user=user)
    serial = cf.simulate(recipe, NETWORK._replace(serial=True), silos, rounds=3, user=user)
    np.testing.assert_allclose(serial.loss, side_by_side.loss, rtol=1e-5)
    np.testing.assert_allclose(serial.metrics["log_loss"], side_by_side.metrics["log_loss"], rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), serial.models, side_by_side.models)


def test_one_device_is_no_mesh():
    assert mesh_for(4, 1 << 30, 0) is None or len(jax.local_devices()) > 1


ON_TWO_DEVICES = """
import json, jax
jax.config.update("jax_num_cpu_devices", 2)
import numpy as np, confrere as cf
from confrere.simulation import rows
from tests.helpers import two_class_silos
silos = two_class_silos((20, 12, 8, 16)).split(0.25, validation=0.25, seed=1)
model = cf.models.mlp([4])
gaps = {}
recipes = {"ditto": cf.ditto(lr=0.3, batch=4), "waffle": cf.waffle(user=3, rounds=3, lr=0.3, batch=4)}
for name, recipe in recipes.items():
    for user in (None, 3):
        runs = []
        for serial, rows.SHARD_BYTES in ((False, 1 << 40), (True, 0)):
            runs.append(cf.simulate(recipe, model._replace(serial=serial), silos, rounds=3, user=user))
        one, two = runs
        assert [len(jax.tree.leaves(h.state.private)[0].sharding.device_set) for h in runs] == [1, 2]
        loss = np.abs(one.loss - two.loss).max()
        models = max(np.abs(a - b).max() for a, b in zip(*(jax.tree.leaves(h.models) for h in runs)))
        scores = max(np.abs(getattr(one, of)["log_loss"] - getattr(two, of)["log_loss"]).max()
                     for of in ("metrics", "validation"))
        gaps[f"{name} {user}"] = [float(loss), float(models), float(scores)]
print(json.dumps({"devices": len(jax.local_devices()), "gaps": gaps}))
"""


@pytest.mark.slow
def test_silos_spread_over_two_devices_give_the_results_of_one():
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-c", ON_TWO_DEVICES], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["devices"] == 2
    assert max(max(found) for found in told["gaps"].values()) < 1e-5, told
