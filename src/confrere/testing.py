"""The conformance suite: what every algorithm must keep to, whoever wrote it.

    from confrere.testing import check_algorithm
    check_algorithm(confrere.fedavg(lr=0.1))
    check_algorithm(confrere.weight_erosion(user=0, lr=0.1))
    check_algorithm(lambda order: of_my_own(prior[order]))

`make(order)` returns the recipe for silos in that order (`order[k]` is the silo at place k), so that a user, a graph or
a prior moves along. Every check raises an `AssertionError` that says which property failed and by how much.
"""

import io
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.core import Algorithm, Block, Client, Ctx, State, Tree, federate, silo_keys, silo_view
from confrere.debug import checked_update
from confrere.models import Model, logistic
from confrere.program import Setup, Trace, advance, numbers, personal_models, rollout, start
from confrere.recipe import Recipe

Make = Callable[[list[int]], Recipe]


class Problem(NamedTuple):
    """A small learning problem on which the properties are checked."""

    model: Model
    data: Block
    params: Tree
    rounds: int = 6


def small_problem() -> Problem:
    """Ragged silos with two classes: one has a single row, one has a single class."""
    silos, rows, features = 4, 13, 3
    rng = np.random.default_rng(0)
    X = rng.normal(size=(silos, rows, features))
    y = (X @ rng.normal(size=(features, silos)))[range(silos), :, range(silos)] > 0
    y[1] = True
    size = np.array([rows, rows - 4, 1, rows - 1])
    model = logistic()
    block = Block(*map(jnp.asarray, (X.astype(np.float32), y.astype(np.int32), size, np.arange(silos))))
    block = block._replace(size=block.size.astype(jnp.int32), id=block.id.astype(jnp.int32))
    return Problem(model, block, model.init(jax.random.key(0), features, 2))


def check_algorithm(
    make: Make | Recipe, problem: Problem | None = None, local: Recipe | None = None, tolerance: float = 1e-5
) -> None:
    """Check that an algorithm keeps to the contract; see the module's docstring.

    make: the recipe, or a function that makes it for silos in a given order.
    local: the recipe of training alone that one silo by itself must equal, if there is one.

    >>> import confrere as cf
    >>> cf.testing.check_algorithm(cf.fedsgd(lr=0.1))
    """
    problem = small_problem() if problem is None else problem
    case = Case(moving(make) if isinstance(make, Recipe) else make, problem, tolerance)
    made_of(make, case)
    check_message_on_the_wire(case)
    check_shapes_are_static(case)
    check_weights(case)
    check_same_key_same_bits(case)
    check_resume(case)
    check_vmap(case)
    check_padding(case)
    check_permutation(case)
    check_equal_silos(case)
    check_absence(case)
    check_zero_mass(case)
    check_one_silo(case, local)
    check_scale(case)
    check_hosts_agree(case)


def moving(recipe: Recipe) -> Make:
    """The recipe for silos in another order: a user, if there is one, moves along."""
    if "user" not in recipe.hyper:
        return lambda order: recipe
    user = recipe.hyper["user"]
    if isinstance(user, str):
        raise ValueError(f"the problem's silos have no names: give the user {user!r} by its place, as in user=0")
    return lambda order: recipe.replace(user=order.index(int(user)))


class Case(NamedTuple):
    """One algorithm on one problem."""

    make: Make
    problem: Problem
    tolerance: float

    @property
    def order(self) -> list[int]:
        """The silos as they come."""
        return list(range(self.problem.data.id.shape[0]))

    def setup(self, recipe: Recipe) -> Setup:
        """The program without evaluation."""
        return Setup(recipe.bound, self.problem.model, (), False, ("weights",))

    def algorithm(self, recipe: Recipe | None = None) -> Algorithm:
        """The algorithm with concrete numbers, outside any trace."""
        recipe = self.make(self.order) if recipe is None else recipe
        return recipe.bound.on(self.problem.model, **numbers(recipe.hyper))

    def run(
        self, recipe: Recipe | None = None, data: Block | None = None, active: Any = None, key: jax.Array | None = None
    ) -> Trace:
        """A compiled run; everybody takes part unless said otherwise."""
        recipe = self.make(self.order) if recipe is None else recipe
        data = self.problem.data if data is None else data
        key = jax.random.key(1) if key is None else key
        here = np.ones((self.problem.rounds, data.id.shape[0]), bool) if active is None else active
        arguments = (numbers(recipe.hyper), key, self.problem.params, data, data, None, here)
        return _run(self.setup(recipe), self.problem.rounds, *arguments)

    def advance(self, state: State, count: int, active: Any = None) -> State:
        """So many more rounds of a compiled run."""
        recipe, data, rounds = self.make(self.order), self.problem.data, self.problem.rounds
        here = np.ones((rounds, len(self.order)), bool) if active is None else active
        given = (numbers(recipe.hyper), jax.random.key(1), data, data, None, here)
        return _advance(self.setup(recipe), rounds, *given, state, count).state

    def begin(self) -> State:
        """The state before round 1."""
        recipe = self.make(self.order)
        return start(self.setup(recipe), numbers(recipe.hyper), self.problem.params, self.problem.data)

    def models(self, trace: Trace, recipe: Recipe | None = None, data: Block | None = None) -> Tree:
        """Everybody's personal model at the end of a run."""
        recipe = self.make(self.order) if recipe is None else recipe
        data = self.problem.data if data is None else data
        return _personal_models(self.setup(recipe), numbers(recipe.hyper), trace.state, data)


def made_of(make: Any, case: Case) -> Recipe:
    """The recipe, or what is wrong with what was given."""
    hint = "give a recipe such as confrere.fedavg(lr=0.1), or a function that makes one from the order of the silos"
    if not callable(case.make):
        raise TypeError(f"{make!r} is no algorithm: {hint}")
    recipe = case.make(case.order)
    if not isinstance(recipe, Recipe):
        raise TypeError(f"it made {type(recipe).__name__}, not a recipe: {hint}")
    for name, value in recipe.hyper.items():
        if name != "prior" and np.ndim(value) > 0:
            raise TypeError(f"{name} is {value!r}, not a number: {hint}")
    return recipe


_run = jax.jit(rollout, static_argnums=(0, 1))
_advance = jax.jit(advance, static_argnums=(0, 1))
_personal_models = jax.jit(personal_models, static_argnums=0)


def gap(one: Tree, two: Tree) -> float:
    """The largest difference, relative to the largest number."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    worst = 0.0
    for a, b in pairs:
        a, b = np.asarray(a, float), np.asarray(b, float)
        scale = max(1.0, float(np.abs(a).max(initial=0)))
        worst = max(worst, float(np.abs(a - b).max(initial=0)) / scale)
        if np.isnan(a - b).any():
            return float("nan")
    return worst


def close(case: Case, what: str, one: Tree, two: Tree) -> None:
    """Fail with the property's name unless the two agree to the tolerance."""
    found = gap(one, two)
    assert found <= case.tolerance, f"{what}: they differ by {found:.2e}, more than {case.tolerance:.0e}"


def same(what: str, one: Tree, two: Tree) -> None:
    """Fail with the property's name unless the two have the same bits."""

    def bits(a):
        return np.asarray(a).dtype.name, np.shape(a), np.asarray(a).tobytes()

    assert jax.tree.map(bits, one) == jax.tree.map(bits, two), f"{what}: the bits differ"


def finite(what: str, tree: Tree) -> None:
    """Fail with the property's name if anything is NaN or infinite."""
    assert all(bool(jnp.isfinite(a).all()) for a in jax.tree.leaves(tree)), f"{what}: something is not finite"


def check_message_on_the_wire(case: Case) -> None:
    """A message is a dict of named parts whose arrays survive being written to bytes and read again."""
    algorithm, data = case.algorithm(), case.problem.data
    state = algorithm.init(case.problem.params, data)
    inbox, private, own = silo_view(algorithm.mixer, state, data, 0)
    key = silo_keys(jax.random.key(1), state.round, data.id)[1][0]
    message, _ = algorithm.client.update(inbox, private, own, Ctx(state.round, True, own.size, 0, key))
    assert isinstance(message, dict), f"the message must be a dict of named parts, not {type(message).__name__}"
    leaves, structure = jax.tree.flatten(message)
    wire = io.BytesIO()
    np.savez(wire, *[np.asarray(a) for a in leaves])
    wire.seek(0)
    with np.load(wire, allow_pickle=False) as arrays:
        read = structure.unflatten([arrays[name] for name in arrays.files])
    same("the message survives the wire", message, read)


def check_shapes_are_static(case: Case) -> None:
    """A round gives back a state of the same shapes and types."""
    algorithm, data = case.algorithm(), case.problem.data
    state = algorithm.init(case.problem.params, data)
    spec = jax.eval_shape(lambda s: algorithm.update(s, data, jax.random.key(0))[0], state)
    before, after = (jax.tree.map(lambda a: (a.shape, a.dtype.name), tree) for tree in (state, spec))
    assert before == after, f"the state changes shape or type in a round: {before} became {after}"


def check_weights(case: Case) -> None:
    """Weights are finite and not negative; the mass is the weight of those who took part, or 0."""
    n = len(case.order)
    active = (np.arange(case.problem.rounds)[:, None] + np.arange(n)) % 3 > 0  # everybody is away now and then
    active[-1] = False
    for trace in (case.run(), case.run(active=active)):
        record = trace.entries.record
        finite("weights and masses are finite", (record.weights, record.mass))
        mass, here = np.asarray(record.mass), np.asarray(record.arrived)
        assert (mass[~here.any(axis=1)] == 0).all(), "nobody took part, but there is mass"
        assert (mass >= 0).all(), f"a mass is negative: {mass.min()}"
        if record.weights is not None:
            weights = np.asarray(record.weights)
            assert (weights >= 0).all(), f"a weight is negative: {weights.min()}"
            total = (weights * here[:, None, :]).sum(axis=2)
            found = gap(mass[mass > 0], total[mass > 0])
            assert found < 1e-4, f"the mass is not the weight of those who took part: off by {found:.1e}"


def check_same_key_same_bits(case: Case) -> None:
    """The same run twice has the same bits."""
    same("the same key gives the same bits", case.run().state, case.run().state)


def check_resume(case: Case) -> None:
    """A run interrupted after every round, its state written out and read again, has the bits of the run at once."""
    begin = state = case.begin()
    for _ in range(case.problem.rounds):
        state = case.advance(jax.tree.map(lambda a: jnp.asarray(np.array(a)), state), 1)
    same("a run resumed after every round is the run at once", case.advance(begin, case.problem.rounds), state)


def check_vmap(case: Case) -> None:
    """Two runs side by side are the two runs by themselves."""
    recipe, data, rounds = case.make(case.order), case.problem.data, case.problem.rounds
    setup, hyper = case.setup(recipe), numbers(recipe.hyper)

    def run(key):
        return rollout(setup, rounds, hyper, key, case.problem.params, data, data).state.inbox

    keys = jax.random.split(jax.random.key(1), 2)
    beside = jax.jit(jax.vmap(run))(keys)
    for k in range(2):
        alone = case.run(key=keys[k]).state.inbox
        close(case, "runs side by side are the runs by themselves", alone, jax.tree.map(lambda a, k=k: a[k], beside))


def check_padding(case: Case) -> None:
    """More padding, whatever it holds, changes nothing."""
    data = case.problem.data
    padded = data._replace(
        X=jnp.pad(data.X, ((0, 0), (0, 5), *((0, 0),) * (data.X.ndim - 2)), constant_values=jnp.nan),
        y=jnp.pad(data.y, ((0, 0), (0, 5)), constant_values=1),
    )
    close(case, "padding changes nothing", case.models(case.run()), case.models(case.run(data=padded), data=padded))


def check_permutation(case: Case) -> None:
    """Silos in other orders, the last one first and all moved on by one, end with the same models."""
    original = case.models(case.run())
    for order in (case.order[::-1], [*case.order[1:], case.order[0]]):
        recipe, data = case.make(order), in_order(order, case.problem.data)
        moved = case.models(case.run(recipe, data), recipe, data)
        close(case, f"permuting the silos to {order} permutes the results", in_order(order, original), moved)


def in_order(order: list[int], tree: Tree) -> Tree:
    """What is stacked over silos, in another order."""
    return jax.tree.map(lambda a: a[np.array(order)], tree)


def check_equal_silos(case: Case) -> None:
    """Silos with the same rows, and the same keys, end with the same model (but for one that listens to them)."""
    data = jax.tree.map(lambda a: jnp.broadcast_to(a[:1], a.shape), case.problem.data)
    models = case.models(case.run(data=data), data=data)
    listener = case.algorithm().mixer.listener
    if listener is not None:  # it alone has heard the others
        models = jax.tree.map(lambda a: a[np.arange(len(a)) != int(listener.user)], models)
    first = jax.tree.map(lambda a: jnp.broadcast_to(a[:1], a.shape), models)
    close(case, "equal silos end equal", first, models)


def check_absence(case: Case) -> None:
    """An absent silo's private state is untouched, whatever its rows hold."""
    algorithm, data = case.algorithm(), case.problem.data
    state = algorithm.init(case.problem.params, data)
    update = jax.jit(lambda rows, active: algorithm.update(state, rows, jax.random.key(1), active))
    for absent in case.order:
        broken = data._replace(X=data.X.at[absent].set(jnp.nan))
        after, _ = update(broken, np.arange(len(case.order)) != absent)
        at = lambda tree, i=absent: jax.tree.map(lambda a: a[i], tree)  # noqa: E731
        same(f"absent silo {absent}'s private state is untouched", at(state.private), at(after.private))
        finite(f"the others go on without silo {absent}", after.inbox)


def check_zero_mass(case: Case) -> None:
    """A round in which nobody takes part keeps every model and all that the mixer remembers of it."""
    rounds = case.problem.rounds
    active = np.ones((rounds, len(case.order)), bool)
    active[rounds // 2 :] = False
    stopped, idle = (case.advance(case.begin(), count, active) for count in (rounds // 2, rounds))
    same("nobody there: the models are kept", stopped.inbox.shared, idle.inbox.shared)
    same("nobody there: private states are kept", stopped.private, idle.private)
    same("nobody there: the mixer's state is kept", stopped.mix, idle.mix)


def check_one_silo(case: Case, local: Recipe | None) -> None:
    """A silo by itself ends as if the others were never there, and as training alone would."""
    recipe, data = case.make(case.order), case.problem.data
    lone = int(recipe.hyper.get("user", 0))
    alone = jax.tree.map(lambda a: a[lone : lone + 1], data)
    by_itself = recipe.replace(user=0) if "user" in recipe.hyper else case.make([0])
    model = jax.tree.map(lambda a: a[0], case.models(case.run(by_itself, alone), by_itself, alone))
    only = np.tile(np.arange(len(case.order)) == lone, (case.problem.rounds, 1))
    among = jax.tree.map(lambda a: a[lone], case.models(case.run(active=only)))
    close(case, "a silo whose fellows are all absent trains as if by itself", model, among)
    if local is not None:
        trained = jax.tree.map(lambda a: a[0], case.models(case.run(local, alone), local, alone))
        close(case, "one silo is local training", model, trained)


def check_scale(case: Case) -> None:
    """Messages a million times larger or smaller leave everything finite."""
    algorithm, data = case.algorithm(), case.problem.data

    @jax.jit
    def update(state, factor):
        scaled = federate(scaled_messages(algorithm.client, factor), algorithm.mixer)
        return scaled.update(state, data, jax.random.key(1))

    for factor in (1e-6, 1e6):
        state = algorithm.init(case.problem.params, data)
        for _ in range(3):
            state, record = update(state, factor)
            finite(f"finite with messages scaled by {factor:g}", (state.inbox, state.mix, record.weights, record.mass))


def scaled_messages(client: Client, factor) -> Client:
    """The same client, shouting or whispering."""

    def update(inbox, private, data, ctx):
        message, private = client.update(inbox, private, data, ctx)
        secret = {k: jax.tree.map(lambda a: (a * factor).astype(a.dtype), v) for k, v in message.items() if k != "told"}
        return {**message, **secret}, private

    return client._replace(update=update)


def check_hosts_agree(case: Case) -> None:
    """Silo by silo without compilation, as deployed nodes and a hub would do it, gives the simulator's models."""
    recipe, data = case.make(case.order), case.problem.data
    algorithm = case.algorithm(recipe)
    rounds, active = min(3, case.problem.rounds), np.ones((case.problem.rounds, len(case.order)), bool)
    active[1:2, -1] = False
    state = case.begin()
    update = checked_update(algorithm, [str(i) for i in case.order])
    for here in active[:rounds]:
        state, _ = update(state, data, jax.random.key(1), here)
    simulated = case.advance(case.begin(), rounds, active)
    close(case, "nodes and a hub agree with the simulator", simulated.inbox, state.inbox)
