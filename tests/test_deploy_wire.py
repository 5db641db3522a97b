"""What arrives over the network is not trusted: each kind of wrong message is refused, counted, named, and changes
nothing."""

import contextlib
import json
import pickle
import struct

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confrere.deploy.wire import HEADER_BYTES, Header, Refused, fill, pack, unpack
from tests.deployed import FEDAVG, NAMES, RUN, STUDY, case_of

HEADER = Header("round", STUDY, RUN, 1, "ash", 7, {"counted": 0})


def test_a_message_survives_the_wire_bit_by_bit():
    tree = {
        "x": {"w": np.arange(6.0).reshape(2, 3), "b": np.float32(0.5)},
        "told": {"n": np.int32(3)},
        "e": np.zeros((0, 2)),
    }
    header, arrays = unpack(pack(HEADER, tree), 10_000)
    assert header == HEADER
    back = fill(arrays, tree)
    for one, two in zip(jax.tree.leaves(tree), jax.tree.leaves(back), strict=True):
        assert np.asarray(one).dtype == two.dtype
        assert np.shape(one) == two.shape
        assert np.asarray(one).tobytes() == two.tobytes()


def refused(content: bytes, limit: int = 10_000) -> str:
    with pytest.raises(Refused) as problem:
        unpack(content, limit)
    return problem.value.why


def test_too_large_a_message_is_refused_before_it_is_read():
    assert refused(b"\xff" * 101, limit=100) == "too large"


def test_a_pickle_is_never_opened():
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    assert refused(pickle.dumps(Bomb())) == "unreadable"


def test_a_header_that_claims_more_than_there_is_is_refused():
    assert refused(struct.pack("<Q", 2**60) + b"{}") == "unreadable"
    assert refused(struct.pack("<Q", HEADER_BYTES + 1) + b" " * (HEADER_BYTES + 1), limit=2**23) == "unreadable"
    assert refused(b"") == "unreadable"


def test_arrays_that_overlap_or_reach_beyond_the_end_are_refused():
    good = pack(HEADER, {"x": np.zeros(4)})
    length = struct.unpack("<Q", good[:8])[0]
    said = json.loads(good[8 : 8 + length])
    said["['x']"]["data_offsets"] = [0, 64]
    text = json.dumps(said).encode()
    assert refused(struct.pack("<Q", len(text)) + text + good[8 + length :]) == "unreadable"


@pytest.mark.parametrize(
    ("field", "value"), [("round", "-1"), ("round", "1e9"), ("sequence", "9" * 30), ("facts", "[1]")]
)
def test_numbers_and_facts_of_a_header_are_what_they_should_be(field, value):
    good = pack(HEADER)
    length = struct.unpack("<Q", good[:8])[0]
    said = json.loads(good[8 : 8 + length])
    said["__metadata__"][field] = value
    text = json.dumps(said).encode()
    assert refused(struct.pack("<Q", len(text)) + text) == "unreadable"


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(content):
    assert refused(content) == "unreadable"


@given(st.integers(0, 400), st.integers(0, 255))
def test_one_changed_byte_is_refused_or_changes_what_is_said_but_never_breaks(place, byte):
    good = bytearray(pack(HEADER, {"x": np.ones(3)}))
    good[place % len(good)] = byte
    with contextlib.suppress(Refused):
        unpack(bytes(good), 10_000)


@pytest.fixture
def hub(tmp_path):
    case = case_of(FEDAVG)
    sites = case.sites(tmp_path)
    made = case.hub(tmp_path, lambda requests, deadline, enough=None: ({}, {}))
    made.sites = sites
    return made


def answers_to(hub, change):
    """A round in which one site's answer is changed on its way."""

    def exchange(requests, deadline, enough=None):
        replies = {name: hub.sites[name].answer(request) for name, request in requests.items()}
        return {**replies, "elm": change(replies["elm"])}, {}

    hub.exchange = exchange
    before = hub.held.counted["elm"]
    line = hub.one_round()
    assert line["event"] == "round"
    assert line["answered"] == ["ash", "birch", "cedar"]
    assert hub.held.counted["elm"] == before
    [entry] = line["refused"]
    assert entry["site"] == "elm"
    assert hub.inspection.refused["elm", entry["why"]] >= 1
    return entry["why"], entry["said"]


def changed(content: bytes, tree=None, **fields) -> bytes:
    """A message with another header, or other arrays."""
    header, arrays = unpack(content, 10**7)
    whole = {**header.__dict__, **fields}
    from safetensors.numpy import save

    said = {k: str(v) for k, v in whole.items()} | {"format": "confrere-1", "facts": json.dumps(dict(whole["facts"]))}
    made = arrays if tree is None else tree(arrays)
    return save({name: np.asarray(array) for name, array in made.items()}, metadata=said)


WRONG = {
    "forged": lambda content: changed(content, silo="ash"),
    "wrong study": lambda content: changed(content, study="00" * 32),
    "wrong run": lambda content: changed(content, run="00" * 8),
    "late": lambda content: changed(content, sequence=1),
    "wrong round": lambda content: changed(content, round=9),
    "not expected": lambda content: changed(content, kind="final"),
    "wrong shape": lambda content: changed(content, lambda a: {k: v[..., :1] for k, v in a.items()}),
    "not finite": lambda content: changed(content, lambda a: {k: v * np.nan for k, v in a.items()}),
    "unreadable": lambda content: content[:-1],
    "too large": lambda content: content + b" " * 10**6,
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_message_is_refused_counted_and_named_and_changes_nothing(why, hub, tmp_path):
    hub.sequence += 5
    found, said = answers_to(hub, WRONG[why])
    assert found == why
    assert said
    others = case_of(FEDAVG)
    apart = others.hub(tmp_path / "apart", lambda requests, deadline, enough=None: ({}, {}))
    there = others.sites(tmp_path / "apart")
    apart.exchange = lambda requests, deadline, enough=None: (
        {name: there[name].answer(request) for name, request in requests.items() if name != "elm"}, {}
    )  # fmt: skip
    apart.one_round()
    assert apart.held.digest == hub.held.digest  # as if the site had been silent


def test_metrics_that_are_no_numbers_are_dropped_and_the_round_counts(hub):
    metrics = {"loss": 0.5, "huge": 10**400, "large": 2**70, "words": "0.5", "truth": True}

    def exchange(requests, deadline, enough=None):
        replies = {name: hub.sites[name].answer(request) for name, request in requests.items()}
        return {**replies, "elm": changed(replies["elm"], facts={"metrics": metrics})}, {}

    hub.exchange = exchange
    line = hub.one_round()
    assert line["event"] == "round"
    assert line["metrics"] == {"elm": {"loss": 0.5, "large": 2.0**70}}


def test_another_number_type_is_a_wrong_shape(hub):
    why, said = answers_to(
        hub, lambda content: changed(content, lambda a: {k: v.astype(np.float16) for k, v in a.items()})
    )
    assert why == "wrong shape"
    assert "float16" in said


def test_a_part_in_excess_or_missing_is_named(hub):
    why, said = answers_to(hub, lambda content: changed(content, lambda a: {**a, "['z']": np.zeros(2)}))
    assert (why, "['z'] in excess" in said) == ("wrong shape", True)
    why, said = answers_to(hub, lambda content: changed(content, lambda a: dict(list(a.items())[1:])))
    assert (why, "it lacks" in said) == ("wrong shape", True)


def test_an_answer_that_was_never_asked_for_is_forged(hub):
    assert answers_to(hub, lambda content: changed(content, sequence=10**15))[0] == "forged"


def test_a_duplicate_and_a_replay_are_told_apart(hub):
    kept: list[bytes] = []

    def exchange(requests, deadline, enough=None):
        replies = {name: hub.sites[name].answer(request) for name, request in requests.items()}
        kept.append(replies["elm"])
        return replies, {}

    hub.exchange = exchange
    hub.one_round()
    digest = hub.held.digest
    with pytest.raises(Refused) as again:
        hub.inspection.accept("elm", kept[0])
    assert again.value.why == "duplicate"
    assert answers_to(hub, lambda content: kept[0])[0] == "replayed"
    assert hub.inspection.refused["elm", "duplicate"] == 1
    assert hub.held.digest != digest  # the others went on


def test_what_a_site_refuses_of_a_hub(hub):
    site = hub.sites["ash"]
    hub.sequence += 1
    good = hub.requests("round", ["ash"])["ash"]
    for why, wrong in {
        "forged": hub.requests("round", ["birch"])["birch"],
        "wrong study": changed(good, study="00" * 32),
        "wrong run": changed(good, run="00" * 8),
        "not expected": changed(good, kind="rows"),
        "not finite": changed(good, lambda a: {k: v * np.nan for k, v in a.items()}),
        "unreadable": changed(good, facts={}),  # says nothing of what counted
        "wrong round": changed(good, facts={"counted": 1}),  # round 1 cannot come after itself
        "wrong shape": changed(good, lambda a: {k: v[None] for k, v in a.items()}),
        "too large": good + b" " * 10**6,
    }.items():
        with pytest.raises(Refused) as problem:
            site.answer(wrong)
        assert problem.value.why == why
    assert site.store.rounds() == []
    hub.sequence += 1
    good = hub.requests("round", ["ash"])["ash"]
    site.answer(good)
    with pytest.raises(Refused) as problem:
        site.answer(good)
    assert problem.value.why == "replayed"


def test_a_site_that_starts_anew_still_knows_which_requests_it_answered(hub, tmp_path):
    hub.sequence += 1
    good = hub.requests("round", ["ash"])["ash"]
    hub.sites["ash"].answer(good)
    with pytest.raises(Refused, match="comes after request"):
        case_of(FEDAVG).site("ash", tmp_path).answer(good)


def test_a_study_cannot_name_a_folder_elsewhere(tmp_path):
    from confrere.deploy.store import Store

    for study, run in (("../../etc", RUN), (STUDY, "../x"), ("", "")):
        with pytest.raises(ValueError, match="hexadecimal"):
            Store(tmp_path, study, run, NAMES[0])
