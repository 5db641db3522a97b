"""A whole study over bytes: from tables and approvals to models that stay at their sites."""

import json
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from confrere.cli.app import app
from confrere.cli.deploy import watch
from confrere.deploy.chronicle import Chronicle
from confrere.deploy.conduct import Conduct, Refusal
from confrere.deploy.desk import Desk, complaint
from confrere.deploy.exchange import UNREACHABLE, InProcess, may_pass
from confrere.deploy.journal import read_journal
from confrere.deploy.policy import PolicyTable, read_policy
from confrere.deploy.report import CHANGED, site_contents
from confrere.deploy.revoked import revoke, revoked_sites, without_revoked
from confrere.deploy.stations import study_folder
from confrere.deploy.twin import model_at, simulated, twin_silos
from confrere.deploy.wire import Header, pack, read_header
from confrere.history import row_for
from confrere.saved import load_model
from confrere.testing import gap
from tests.hospitals import SITES, approve, conduct, kept_models, make_sites, study, tables


@pytest.fixture(autouse=True)
def precision_as_before():
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path)


def test_a_study_from_tables_ends_with_the_simulators_models(places, tmp_path):
    asked = study("scaffold", more="double = true")
    approve(places, asked)
    line = conduct(places, asked, tmp_path / "hub").whole()
    assert line["event"] == "finished"
    models = kept_models(places, asked)
    history = simulated(asked, tables(places))
    assert set(models) == set(SITES)
    for name, saved in models.items():
        assert gap(model_at(history, name), saved.model.params) < 1e-9
    assert set(line["metrics"]) == set(SITES)
    assert {"loss", "accuracy", "log_loss"} <= set(line["metrics"]["ash"])


def test_the_features_are_those_of_silos_from_tables(places):
    asked = study(data="min_level = 5")
    silos = twin_silos(asked, tables(places))
    assert set(silos.feature_names) == {"age", "dose", "dose=missing", "ward=A", "ward=B", "ward=C"}
    train = np.concatenate([silo.rows("train")[0] for silo in silos.silos])
    np.testing.assert_allclose(train[:, silos.feature_names.index("age")].std(), 1)
    assert [silo.count("test") for silo in silos.silos] == [15] * 4


def test_only_the_users_site_gets_the_finished_model_of_its_user(places, tmp_path):
    asked = study("weight_erosion", "lr = 0.5", 'user = "cedar"')
    approve(places, asked)
    conduct(places, asked, tmp_path / "hub").whole()
    models = kept_models(places, asked)
    assert set(models) == {"cedar"}
    assert gap(model_at(simulated(asked, tables(places)), "cedar"), models["cedar"].model.params) < 1e-5
    predicted = models["cedar"].model.predict(places["cedar"] / "patients.csv")
    assert set(predicted) <= {"yes", "no"}


def test_without_approvals_nothing_leaves_but_that(places, tmp_path):
    asked = study()
    run = conduct(places, asked, tmp_path / "hub")
    with pytest.raises(Refusal, match=r"ash: its operator has not approved this study: confrere site approve"):
        run.whole()
    assert read_policy(places["ash"]).proposals().keys() == {asked.hash}
    assert not (places["ash"] / "state").exists()


def test_who_refuses_is_told_with_its_reason_and_the_others_go_on(places, tmp_path):
    asked = study()
    approve(places, asked)
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text() + "max_rounds = 5\n")
    run = conduct(places, asked, tmp_path / "hub")
    run.whole()
    opened = next(line for line in run.journal.lines() if line["event"] == "opened")
    assert opened["refuses"] == {"elm": ["10 rounds are more than the 5 that this site allows"]}
    assert set(opened["sites"]) == {"ash", "birch", "cedar"}


def test_a_site_in_too_small_a_company_leaves_and_so_may_the_next(places, tmp_path):
    asked = study()
    approve(places, asked)
    for name, policy in {"elm": "max_rounds = 5\n", "cedar": "min_others = 3\n"}.items():
        file = places[name] / "site.toml"
        file.write_text(file.read_text() + policy)
    run = conduct(places, asked, tmp_path / "hub")
    with pytest.raises(Refusal, match="ash: 1 other site takes part, and this site wants 2 at least"):
        run.whole()


def test_an_approval_that_is_withdrawn_counts_at_once(places, tmp_path):
    asked = study()
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    lines: list[dict] = []

    def watch(line):
        lines.append(line)
        if line["round"] == 4:
            read_policy(places["elm"]).withdraw(asked.hash)

    run.whole(watch)
    assert "elm" in lines[3]["answered"]
    assert "elm" not in lines[4]["answered"]
    assert lines[4]["errors"]["elm"] == "its operator has withdrawn the approval"


def test_no_more_bytes_leave_than_the_site_allows(places, tmp_path):
    asked = study()
    approve(places, asked)
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text() + "max_bytes = 6000\n")
    run = conduct(places, asked, tmp_path / "hub")
    run.whole()
    rounds = [line for line in run.journal.lines() if line["event"] == "round"]
    assert "elm" in rounds[0]["answered"]
    assert rounds[-1]["errors"]["elm"] == "the bytes of this study are more than this site allows"


@pytest.mark.parametrize(
    ("algorithm", "options", "more"),
    [
        ("fedavg", "lr = 0.2, batch = 8", ""),
        ("weight_erosion", "lr = 0.5, p_d = 0.05", 'user = "cedar"'),
        ("ifca", "lr = 0.5, batch = 8", ""),
    ],
)
def test_shares_of_a_site_that_left_are_those_of_the_simulator(algorithm, options, more, places, tmp_path):
    asked = study(algorithm, options, more)
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    active = np.ones((10, 4), bool)
    active[3:, SITES.index("elm")] = False

    def watch(line):
        if line["round"] == 3:
            read_policy(places["elm"]).withdraw(asked.hash)

    run.whole(watch)
    history = simulated(asked, tables(places), active)
    mean = row_for(history.shares, SITES.index("cedar"), history.per_silo).mean(axis=0)
    [place] = (places["cedar"] / "state").glob(f"{asked.hash[:16]}-*")
    told = Chronicle.heard(json.loads((place / "chronicle.json").read_text()))
    assert told.shares == pytest.approx(dict(zip(SITES, mean / mean.sum(), strict=True)), rel=1e-5)
    assert set(told.weights["elm"][3:]) == {0.0}
    assert load_model(place / "model").manifest["weights"] == pytest.approx(told.shares)


def test_metrics_that_are_not_allowed_stay(places, tmp_path):
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text() + 'metrics = ["accuracy"]\n')
    file = places["ash"] / "site.toml"
    file.write_text(file.read_text() + "min_group = 5000\n")
    asked = study(data="min_level = 5000")
    approve(places, asked)
    with pytest.raises(Refusal, match="no feature is left"):
        conduct(places, asked, tmp_path / "nobody").whole()
    file.write_text(file.read_text().replace("min_group = 5000", "min_group = 16"))
    asked = study(data="min_level = 16", more="double = false")
    approve(places, asked)
    line = conduct(places, asked, tmp_path / "hub").whole()
    assert set(line["metrics"]["elm"]) == {"accuracy"}
    assert set(line["metrics"]["ash"]) == {"loss"}  # 45 training rows, but only 15 for testing


def test_a_site_process_that_starts_anew_is_told_to_begin_and_goes_on(places, tmp_path):
    asked = study("scaffold", more="double = true")
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    lines: list[dict] = []

    def watch(line):
        lines.append(line)
        if line["round"] in (3, 6):
            run.plainly.answers["birch"] = Desk(places["birch"]).answer

    run.whole(watch)
    assert all(line["answered"] == list(SITES) for line in lines)
    history = simulated(asked, tables(places))
    assert gap(model_at(history, "birch"), kept_models(places, asked)["birch"].model.params) < 1e-9


def test_a_hub_that_starts_anew_goes_on_with_the_same_features(places, tmp_path):
    asked = study("scaffold", more="double = true")
    approve(places, asked)
    lines: list[dict] = []
    stopped = conduct(places, asked, tmp_path / "hub").whole(
        lines.append, stop=lambda: "stopped" if len(lines) == 4 else None
    )
    assert stopped["event"] == "stopped"
    again = conduct(places, asked, tmp_path / "hub")
    assert again.whole(lines.append)["event"] == "finished"
    assert [line["round"] for line in lines] == list(range(1, 11))
    history = simulated(asked, tables(places))
    assert gap(model_at(history, "ash"), kept_models(places, asked)["ash"].model.params) < 1e-9


def test_a_site_that_comes_late_takes_part_from_then_on(places, tmp_path):
    asked = study("scaffold", more="double = true")
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    run.plainly = InProcess({name: answer for name, answer in run.plainly.answers.items() if name != "elm"})
    lines: list[dict] = []
    run.now = lambda: 100.0 * len(lines)

    def watch(line):
        lines.append(line)
        if line["round"] == 4:
            run.plainly.answers["elm"] = Desk(places["elm"]).answer

    run.whole(watch)
    assert [("elm" in line["answered"]) for line in lines] == [False] * 5 + [True] * 5
    assert set(kept_models(places, asked)) == set(SITES)


def test_what_goes_wrong_at_a_site_is_told_in_few_words_and_no_cell_leaves(places, tmp_path):
    asked = study()
    approve(places, asked)
    table = places["elm"] / "patients.csv"
    table.write_text(table.read_text().replace("age,", "age,", 1) + "secret-cell-17,1.0,A,yes\n")
    run = conduct(places, asked, tmp_path / "hub")
    run.whole()
    text = (tmp_path / "hub" / "journal.jsonl").read_text() + (tmp_path / "hub" / "opening.json").read_text()
    assert "secret-cell-17" not in text
    assert str(tmp_path) not in text
    assert "a column of its table does not hold what it should" in text


def test_only_names_kinds_counts_and_sums_cross_before_round_one(places, tmp_path):
    asked = study()
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    sent: list[dict] = []
    inner = run.plainly

    def listen(requests, deadline, enough=None):
        replies, errors = inner(requests, deadline, enough)
        sent.extend(dict(read_header(content).facts) for content in replies.values() if read_header(content).round == 0)
        return replies, errors

    run.plainly = listen
    run.whole()
    assert {key for facts in sent for key in facts} == {
        "survey", "classes", "layout", "everything", "training", "rows", "test",
    }  # fmt: skip
    rows = {
        line.split(",")[0]
        for place in places.values()
        for line in (place / "patients.csv").read_text().split("\n")[1:-1]
    }
    numbers = set(json.dumps(sent).replace("[", ",").replace("]", ",").replace(" ", "").split(","))
    assert not rows & numbers


def test_a_study_whose_hash_is_not_its_own_is_forged(places):
    desk = Desk(places["ash"])
    asked = study()
    approve(places, asked)
    forged = pack(Header("propose", asked.hash, "ab" * 8, 0, "ash", 1, {"study": asked.content.decode() + "\n"}))
    header = read_header(desk.answer(forged))
    assert (header.kind, header.facts["why"]) == ("error", "forged")
    unknown = pack(Header("rows", asked.hash, "ab" * 8, 0, "ash", 1))
    assert read_header(desk.answer(unknown)).facts["why"] == "not expected"
    assert read_header(desk.answer(b"nonsense")).facts["why"] == "unreadable"


def test_scales_of_its_own_need_no_sums(places, tmp_path):
    asked = study("fedavg", more="double = true", data='scale = "silo"')
    for place in places.values():
        file = place / "site.toml"
        file.write_text(file.read_text() + "share_sums = false\n")
    approve(places, asked)
    line = conduct(places, asked, tmp_path / "hub").whole()
    assert line["event"] == "finished"
    history = simulated(asked, tables(places))
    assert gap(model_at(history, "elm"), kept_models(places, asked)["elm"].model.params) < 1e-9


def test_a_site_fetches_its_model_with_a_report_made_from_its_own_rows_alone(places, tmp_path):
    asked = study("weight_erosion", "lr = 0.5, p_d = 0.05", 'user = "cedar"')
    approve(places, asked)
    conduct(places, asked, tmp_path / "hub").whole()
    for name in set(SITES) - {"cedar"}:
        (places[name] / "patients.csv").unlink()  # nothing of the others is needed
    [place] = (places["cedar"] / "state").glob(f"{asked.hash[:16]}-*")
    contents = site_contents(place, read_policy(places["cedar"]), made="today")
    [hospital] = contents.hospitals
    raw = np.array([line["weights"][0] for line in read_journal(tmp_path / "hub") if line["event"] == "round"])
    shares = (raw / raw.sum(axis=1, keepdims=True)).mean(axis=0)
    assert hospital.listening.shares == pytest.approx(dict(zip(SITES, shares, strict=True)))
    assert hospital.listening.rounds["ash"] == pytest.approx(raw[:, 0])
    assert (
        "Of 10 rounds, messages counted of ash in 10; birch in 10; cedar in 10; elm in 10." in hospital.listening.words
    )
    assert contents.sizes == {"cedar": (45, 15)}
    scores = {(s.algorithm, s.metric): s.mean for s in hospital.help.scores}
    saved = load_model(place / "model")
    assert scores["weight_erosion", "log_loss"] == pytest.approx(saved.manifest["test"]["log_loss"], abs=1e-6)
    assert scores["weight_erosion", "accuracy"] == saved.manifest["test"]["accuracy"]
    assert ("ridge_local", "log_loss") in scores
    assert hospital.notes == ()
    assert hospital.cost.sent[-1].numbers == {"cedar": 10 * 14}  # two scores of six features and an intercept
    assert hospital.cost.sent[-1].what == "numbers of its messages in 10 rounds of weight_erosion that counted"
    assert "was sent as well, and is not in these numbers" in hospital.cost.words[1]


def test_no_site_can_fetch_anothers_finished_model(places, tmp_path):
    asked = study("weight_erosion", "lr = 0.5", 'user = "cedar"')
    approve(places, asked)
    conduct(places, asked, tmp_path / "hub").whole()
    fetch = lambda name: CliRunner().invoke(  # noqa: E731
        app, ["fetch", asked.hash, "--folder", str(places[name]), "--out", str(tmp_path / f"of-{name}"), "--json"]
    )
    for name in ("ash", "birch", "elm"):
        refused = fetch(name)
        assert refused.exit_code != 0
        assert f"{name} has no finished model of study {asked.hash}" in refused.output
        assert not (tmp_path / f"of-{name}").exists()
        assert list(places[name].rglob("model.safetensors")) == []
    own = fetch("cedar")
    assert own.exit_code == 0, own.output
    page = (tmp_path / "of-cedar" / "report.html").read_text()
    assert "What cedar learned with the others" in page
    assert load_model(tmp_path / "of-cedar").manifest["user"] == "cedar"
    assert read_journal(tmp_path / "hub")[-1]["event"] == "finished"
    kept = [file.read_bytes() for file in (tmp_path / "hub").rglob("*") if file.is_file()]
    table = (places["cedar"] / "patients.csv").read_text().splitlines()[1]
    assert not any(table.encode() in content for content in kept)


def test_a_report_says_if_the_table_was_changed_since(places, tmp_path):
    asked = study()
    approve(places, asked)
    conduct(places, asked, tmp_path / "hub").whole()
    table = places["ash"] / "patients.csv"
    table.write_text(table.read_text() + "61.0,2.00,A,yes\n")
    [place] = (places["ash"] / "state").glob(f"{asked.hash[:16]}-*")
    assert site_contents(place, read_policy(places["ash"])).hospitals[0].notes == (CHANGED,)


@pytest.mark.parametrize("compress", ["bits=8", "bits=3", "top_k=0.3"])
def test_compressed_messages_are_smaller_and_the_models_those_of_the_simulator(compress, places, tmp_path):
    plain, asked = (study("fedavg", more=f"double = true\n{more}") for more in ("", f'compress = "{compress}"'))
    lines = {}
    for one in (plain, asked):
        approve(places, one)
        run = conduct(places, one, tmp_path / one.hash[:8])
        assert run.whole()["event"] == "finished"
        lines[one.hash] = next(line for line in run.journal.lines() if line["event"] == "round")
    assert lines[asked.hash]["bytes"] < lines[plain.hash]["bytes"]
    history = simulated(asked, tables(places))
    for name, saved in kept_models(places, asked).items():
        assert gap(model_at(history, name), saved.model.params) < 1e-9
    assert gap(model_at(simulated(plain, tables(places)), "ash"), model_at(history, "ash")) > 1e-6


REFUSING = {  # what a site's policy says -> what it answers to a study that its operator approved
    'algorithms = ["local"]': "this site does not allow fedavg",
    "min_others = 4": "the study has 3 other sites, and this site wants 4 at least",
    "min_dilution = 0.9": "the others have 75% of all rows, and this site wants 90% at least",
    "max_rounds = 9": "10 rounds are more than the 9 that this site allows",
    "min_group = 6": "min_level is 5, and this site tells nothing of fewer than 6 rows",
    "share_sums = false": 'this site shares no sums for a common scale: the study must say scale = "silo"',
    "require_privacy = true": "this site requires differential privacy, which no study can promise yet",
}
LIMITING = {"max_bytes", "metrics"}  # see the tests of bytes and of metrics


@pytest.mark.parametrize("policy", REFUSING)
def test_every_key_of_a_sites_policy_wins_over_the_study(policy, places, tmp_path):
    asked = study()
    approve(places, asked)
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text() + f"{policy}\n")
    run = conduct(places, asked, tmp_path / "hub")
    run.opening = run.negotiated()
    run.admitted(asked.names)
    assert run.opening.refuses == {"elm": [REFUSING[policy]]}
    assert set(run.opening.sizes) == {"ash", "birch", "cedar"}


def test_the_keys_of_a_policy_are_those_that_are_tested():
    assert {line.split(" = ")[0] for line in REFUSING} | LIMITING == set(PolicyTable.model_fields)


def test_a_site_that_is_revoked_is_asked_for_nothing_from_then_on(places, tmp_path):
    asked = study()
    approve(places, asked)
    run = conduct(places, asked, tmp_path / "hub")
    asked_of: list[set[str]] = []
    inner = run.plainly

    def listening(requests, deadline, enough=None):
        asked_of.append(set(requests))
        return inner(requests, deadline, enough)

    run.plainly = without_revoked(listening, lambda: revoked_sites(tmp_path))
    lines: list[dict] = []

    def watch(line):
        lines.append(line)
        if line["round"] == 4:
            revoke(tmp_path, "elm")
            asked_of.clear()

    run.whole(watch)
    assert "elm" in lines[3]["answered"]
    assert {line["errors"]["elm"] for line in lines[4:]} == {"the hub has revoked it"}
    assert len(asked_of) > 5
    assert not any("elm" in sites for sites in asked_of)


LIES = {
    "no rows": lambda facts: {key: value for key, value in facts.items() if key != "rows"},
    "rows beyond counting": lambda facts: {**facts, "rows": 2**40},
    "rows in words": lambda facts: {**facts, "rows": "many"},
    "a refusal that is no list": lambda facts: {"refuses": 5},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_site_that_answers_nonsense_before_round_one_takes_no_part_and_the_others_go_on(lie, places, tmp_path):
    asked = study()
    approve(places, asked)
    desks = {name: Desk(place).answer for name, place in places.items()}

    def lying(request: bytes) -> bytes:
        header = read_header(desks["elm"](request))
        return pack(replace(header, facts=LIES[lie](header.facts) if header.kind == "begin" else header.facts))

    run = Conduct(asked, tmp_path / "hub", InProcess({**desks, "elm": lying}))
    assert run.whole()["event"] == "finished"
    assert set(run.opening.sizes) == {"ash", "birch", "cedar"}
    assert set(run.opening.refuses) == {"elm"}


def test_what_is_no_bytes_costs_a_site_its_round_and_the_others_nothing(places, tmp_path):
    asked = study()
    approve(places, asked)
    desks = {name: Desk(place).answer for name, place in places.items()}

    def lying(request: bytes) -> Any:
        return 5 if read_header(request).kind == "round" else desks["elm"](request)

    run = Conduct(asked, tmp_path / "hub", InProcess({**desks, "elm": lying}))
    assert run.whole()["event"] == "finished"
    rounds = [line for line in run.journal.lines() if line["event"] == "round"]
    assert {tuple(line["answered"]) for line in rounds} == {("ash", "birch", "cedar")}
    assert {(entry["site"], entry["why"]) for line in rounds for entry in line["refused"]} == {("elm", "unreadable")}


def test_a_site_that_says_that_it_cannot_be_reached_is_not_taken_for_one_that_is_away(places, tmp_path):
    asked = study()
    approve(places, asked)
    desks = {name: Desk(place).answer for name, place in places.items()}

    def lying(request: bytes) -> bytes:
        header = read_header(request)
        return complaint(header, "trouble", UNREACHABLE) if header.kind == "round" else desks["elm"](request)

    run = Conduct(asked, tmp_path / "hub", InProcess({**desks, "elm": lying}))
    run.whole()
    told = {line["errors"]["elm"] for line in run.journal.lines() if line["event"] == "round"}
    assert told == {f"it says: {UNREACHABLE}"}
    assert not any(map(may_pass, told))


FINE = {"rounds": 2, "abandoned": 1, "answered": {"ash": 2}, "weights": {"ash": [1.0, 0.5]}}


def test_a_chronicle_is_heard_as_it_was_told():
    assert Chronicle.heard(FINE) == Chronicle(2, 1, {"ash": 2}, {"ash": (1.0, 0.5)})


@pytest.mark.parametrize(
    "nonsense",
    [
        {"rounds": float("inf")},
        {"rounds": -1},
        {"answered": {"ash": -5}},
        {"weights": {"ash": [10**400]}},
        {"answered": 3},
    ],
)
def test_a_chronicle_that_cannot_be_counts_as_not_told(nonsense):
    assert Chronicle.heard({**FINE, **nonsense}) == Chronicle()


@pytest.mark.parametrize("weights", [{"ash": []}, {"ash": [1.0], "elm": []}, {"ash": [float("nan")]}])
def test_weights_that_cannot_be_leave_no_shares(weights):
    heard = Chronicle.heard({**FINE, "weights": weights})
    assert heard.rounds == 2
    assert heard.shares == {}


def test_what_a_site_says_of_its_troubles_is_short(places):
    words = read_header(complaint(Header("round", "", "", 0, "ash", 1), "trouble", "x" * 5000)).facts["said"]
    assert len(words) == 300


def test_progress_tells_who_takes_part_who_refuses_and_every_round(places, tmp_path, capsys):
    asked = study("weight_erosion", "lr = 0.5", 'user = "cedar"')
    approve(places, asked)
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text() + "max_rounds = 5\n")
    run = conduct(places, asked, study_folder(tmp_path, asked.hash))
    run.whole()
    watch(study_folder(tmp_path, asked.hash), asked.names, 10, hidden=False, seen=0)
    shown = capsys.readouterr().out.splitlines()
    assert "taking part: ash (45 rows), birch (45 rows), cedar (45 rows)" in shown
    assert "  elm does not: 10 rounds are more than the 5 that this site allows" in shown
    first = next(line for line in read_journal(run.folder) if line["event"] == "round")
    raw = first["weights"][0]
    assert raw[SITES.index("elm")] == 0
    weights = ", ".join(f"{name} {w / sum(raw):.2g}" for name, w in zip(SITES, raw, strict=True))
    losses = ", ".join(f"{name} {first['metrics'][name]['loss']:.4f}" for name in ("ash", "birch", "cedar"))
    told = f"round 1 of 10: ash, birch, cedar answered; weights {weights}; losses {losses}; {first['bytes']:,} bytes"
    assert any(line.startswith(told) for line in shown), shown
    assert shown[-1] == "finished"
