"""What was computed is found again, bit for bit; what is missing or damaged is computed again."""

import dataclasses
import json

import jax
import numpy as np
import pytest

import confrere as cf
from confrere.disk import write_whole
from confrere.study.blocks import block_size
from confrere.study.cases import Shape
from confrere.study.written import hash_of, holds_functions

from .study_helpers import small_silos

LOGISTIC = cf.models.logistic()


def study(**other):
    """Two algorithms, three users, two seeds."""
    known = {"seeds": 2, "rounds": 4, "grid": {"lr": [0.1, 1.0]}, "metrics": ["log_loss"], "baselines": False}
    algorithms = {"local": cf.local(lr=0.1, batch=8, steps=1), "fedsgd": cf.fedsgd(lr=0.1, batch=8)}
    return cf.Study(small_silos(), LOGISTIC, algorithms, **{**known, **other})


def bits(result):
    """Everything a result holds, exactly."""
    return json.dumps([c.plain() for c in result.cells_])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store with a whole study, and its result."""
    folder = tmp_path_factory.mktemp("store")
    return folder, study().run(store=folder)


def test_the_same_study_has_the_same_bits(whole):
    assert bits(study().run()) == bits(whole[1])


def test_without_a_store_nothing_is_hashed(monkeypatch, whole):
    monkeypatch.setattr(cf.Study, "fingerprint", None)
    assert bits(study().run()) == bits(whole[1])


def test_a_second_run_computes_nothing(whole):
    folder, first = whole
    seen = []
    again = study().run(store=folder, progress=lambda *counts: seen.append(counts))
    assert seen == []
    assert bits(again) == bits(first)


def test_a_study_without_tuning_is_found_again_too(tmp_path):
    plain = {"tune": None, "grid": {"lr": 0.1}, "users": ["a"]}
    first = study(**plain).run(store=tmp_path)
    seen = []
    again = study(**plain).run(store=tmp_path, progress=lambda *counts: seen.append(counts))
    assert seen == []
    assert bits(again) == bits(first)


def test_only_what_is_missing_is_computed_and_has_the_same_bits(whole, tmp_path):
    folder, first = whole
    files = sorted(folder.glob("*.json"))
    assert len(files) == 12
    for file in files[::2]:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    seen = []
    again = study().run(store=tmp_path, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (6 * 12, 6 * 12)
    assert bits(again) == bits(first)
    assert [f.read_bytes() for f in sorted(tmp_path.glob("*.json"))] == [f.read_bytes() for f in files]


def test_fewer_users_and_more_seeds_share_cells(whole, tmp_path):
    folder, first = whole
    seen = []
    some = study(users=["b"]).run(store=folder, progress=lambda *counts: seen.append(counts))
    assert seen == []
    assert [c.plain() for c in some.cells_] == [c.plain() for c in first.cells_ if c.user == "b"]
    alone = study(users=["b"], seeds=[1]).run()
    assert alone.of("local", "b")[0].plain() == first.of("local", "b")[1].plain()


DAMAGE = {
    "cut off": lambda b: b[: len(b) // 2], "one digit changed": lambda b: b.replace(b"0.", b"1.", 1),
    "empty": lambda b: b"{}",
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_reported_and_computed_again(whole, tmp_path, damage):
    folder, first = whole
    files = sorted(folder.glob("*.json"))
    for file in files:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    victim = tmp_path / files[3].name
    victim.write_bytes(damage(victim.read_bytes()))
    with pytest.warns(UserWarning, match=f"{victim.name} is damaged"):
        again = study().run(store=tmp_path)
    assert bits(again) == bits(first)
    assert victim.read_bytes() == files[3].read_bytes()
    assert len(list(tmp_path.iterdir())) == len(files)  # nothing half written is left


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": 5}, {"grid": {"lr": [0.1, 2.0]}}, {"folds": 4}, {"criterion": "accuracy"}, {"others": "train"},
        {"shared_batches": True}, {"metrics": ["accuracy"]}, {"tune": None, "grid": {"lr": 0.1}},
    ],
    ids=["rounds", "grid", "folds", "criterion", "others", "batches", "metrics", "tuning"],
)  # fmt: skip
def test_whatever_determines_a_cell_is_in_its_hash(change):
    def keys(one):
        from confrere.study.cases import cases_of

        silos = small_silos().split(test=0.5, seed=0)
        cases = cases_of(0, silos, [0], one.settings.others, LOGISTIC, one.settings.folds)
        return {one.fingerprint(c, cases[0]) for c in one.contenders}

    assert not keys(study()) & keys(study(**change))


def test_the_data_and_the_precision_are_in_the_hash(x64):
    from confrere.study.cases import cases_of

    def key(silos):
        one = study()
        return one.fingerprint(one.contenders[0], cases_of(0, silos, [0], "all", LOGISTIC, 5)[0])

    silos = small_silos().split(test=0.5, seed=0)
    moved = small_silos().split(test=0.5, seed=0)
    moved.silos[2].X[0, 0] += 1e-9
    assert key(silos) != key(moved)
    assert key(silos) == key(small_silos().split(test=0.5, seed=0))
    with jax.enable_x64(False):
        single = key(silos)
    assert single != key(silos)


@pytest.mark.slow
def test_blocks_respect_the_memory_and_results_depend_on_it_in_the_last_bits_only(whole, tmp_path):
    shape = Shape(silos=4, rows=480, tests=240, held=48, features=9, outputs=2)
    sizes = [block_size(shape, 5, 6, 20, 124, 1000, memory) for memory in (2e6, 2e7, 2e8, 2e9)]
    assert all(size.bytes <= memory for size, memory in zip(sizes, (2e6, 2e7, 2e8, 2e9), strict=True) if memory > 2e6)
    assert sizes[0].side_by_side == (False, False) or sizes[0].group == 1
    assert sizes[-1].groups * sizes[-1].group <= 1000 + sizes[-1].group
    for file in whole[0].glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tight = study(memory=3e4).run(store=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 24  # kept apart
    for one, two in zip(tight.cells_, whole[1].cells_, strict=True):
        assert one.hyper == two.hyper
        np.testing.assert_allclose(one.curves["log_loss"], two.curves["log_loss"], rtol=1e-5)


def test_a_memory_limit_that_changes_no_block_changes_no_hash(whole):
    seen = []
    study(memory=5e9).run(store=whole[0], progress=lambda *counts: seen.append(counts))
    assert seen == []


def test_models_of_one_name_that_compute_something_else_share_nothing(tmp_path):
    def twice(params, X):
        return LOGISTIC.apply(params, 2 * X)

    other = LOGISTIC._replace(apply=twice)
    plain = {"tune": None, "grid": {"lr": 0.1}, "users": ["a"]}
    first = study(**plain).run(store=tmp_path)
    makers = {"local": cf.local(lr=0.1, batch=8, steps=1), "fedsgd": cf.fedsgd(lr=0.1, batch=8)}
    how = {"seeds": 2, "rounds": 4, "metrics": ["log_loss"], "baselines": False, **plain}
    assert bits(cf.Study(small_silos(), other, makers, **how).run(store=tmp_path)) != bits(first)


def stepping(scale):
    """Algorithms of one name: gradient steps of the given scale, a number or one per class and feature."""

    def maker(loss, lr):
        inner = cf.local(lr=0.1).make(loss, lr=lr)

        def personal(state, data, i):
            return jax.tree.map(lambda a: a * scale, inner.personal(state, data, i))

        return inner._replace(personal=personal)

    return cf.Recipe(maker, {}, {"lr": 0.1}, "stepping")


def keys_of(algorithm, model=LOGISTIC):
    from confrere.study.cases import cases_of

    one = cf.Study(small_silos(), model, {"mine": algorithm}, seeds=1, baselines=False, tune=None)
    cases = cases_of(0, small_silos().split(test=0.5, seed=0), [0], "all", model, 5)
    return one.fingerprint(one.contenders[0], cases[0])


def test_algorithms_of_one_name_that_compute_something_else_have_hashes_of_their_own():
    keys = [keys_of(stepping(scale)) for scale in (1.0, 1.0000001, 2.0, np.array([1.0, 2.0]), np.array([1.0, 3.0]))]
    assert len(set(keys)) == 5
    assert keys_of(stepping(2.0)) == keys[2]


def test_a_function_among_an_algorithms_settings_is_hashed_by_what_it_does():
    def maker(loss, lr, change):
        return cf.local(lr=0.1).make(loss, lr=change(lr))

    def recipe(change):
        return cf.Recipe.of(maker, "mine", {"change": change}, lr=0.1)

    keys = [keys_of(recipe(lambda lr, times=times: times * lr)) for times in (1, 2, 2)]
    assert keys[0] != keys[1] == keys[2]


def test_models_whose_losses_differ_have_hashes_of_their_own():
    def harder(by):
        return LOGISTIC._replace(loss=lambda params, batch: by * LOGISTIC.loss(params, batch))

    assert len({keys_of(cf.local(lr=0.1), model) for model in (LOGISTIC, harder(1.0), harder(2.0))}) == 3


def test_what_calls_back_into_python_is_never_taken_for_something_else():
    one = jax.ShapeDtypeStruct((), np.float32)
    by_name = [jax.make_jaxpr(lambda x, s=s: jax.pure_callback(lambda v: v * s, one, x))(1.0) for s in (1.0, -1.0)]
    assert str(by_name[0]) == str(by_name[1])
    assert hash_of(by_name[0]) != hash_of(by_name[1])
    inside = jax.make_jaxpr(jax.jit(lambda x: jax.pure_callback(lambda v: v, one, x)))(1.0)
    assert hash_of(inside) != hash_of(inside)
    plain = jax.make_jaxpr(lambda x: 2 * x)(1.0)
    assert hash_of(plain) == hash_of(plain)


def test_functions_are_found_inside_settings():
    @dataclasses.dataclass
    class Setting:
        of: object

    assert holds_functions({"a": [1, Setting(np.sin)]})
    assert not holds_functions({"a": [1, Setting(2.0)], "b": np.array(1.0), "c": "words"})


def test_algorithms_of_one_name_share_no_cells(tmp_path):
    how = {"seeds": 1, "rounds": 2, "metrics": ["log_loss"], "baselines": False, "tune": None, "users": ["a"]}
    first, second = (
        cf.Study(small_silos(), LOGISTIC, {"mine": stepping(by)}, **how).run(store=tmp_path) for by in (1.0, -1.0)
    )
    assert bits(first) != bits(second)
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "x").touch()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", "text")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]
