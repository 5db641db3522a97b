"""A site's own policy wins, whatever a study asks for."""

from pathlib import Path

import pytest

from confrere.deploy.policy import allowed_metrics, company, objections, read_policy
from confrere.deploy.study import known_algorithms, read_study, study_of

STUDY = """
[data]
label = "ill"
min_level = 5

[study]
sites = ["ash", "birch", "cedar"]
algorithm = "fedavg"
options = { lr = 0.1, batch = 8 }
rounds = 20
"""
SITE = """
[site]
name = "ash"
data = "patients.csv"
"""


def study(text: str = STUDY):
    return study_of(text.encode())


def site(folder: Path, policy: str = ""):
    (folder / "site.toml").write_text(SITE + "[policy]\n" + policy)
    return read_policy(folder)


def test_nothing_is_approved_to_begin_with(tmp_path):
    policy, asked = site(tmp_path), study()
    assert objections(policy, asked) == [
        f"its operator has not approved this study: confrere site approve {asked.hash[:12]}"
    ]
    policy.approve(asked)
    assert objections(policy, asked) == []
    policy.withdraw(asked.hash)
    assert len(objections(policy, asked)) == 1


def test_one_changed_byte_asks_again(tmp_path):
    policy = site(tmp_path)
    policy.approve(study())
    assert objections(policy, study(STUDY + "\n")) != []
    assert objections(policy, study(STUDY.replace("0.1", "0.2"))) != []


@pytest.mark.parametrize(
    ("policy", "change", "said"),
    [
        ("require_privacy = true", ("", ""), "requires differential privacy"),
        ("", ('"ash", ', ""), "does not name ash"),
        ('algorithms = ["local"]', ("", ""), "does not allow fedavg"),
        ("max_rounds = 19", ("", ""), "20 rounds are more than the 19"),
        ("min_others = 3", ("", ""), "2 other sites, and this site wants 3"),
        ("min_group = 6", ("", ""), "tells nothing of fewer than 6 rows"),
        ("share_sums = false", ("", ""), 'scale = "silo"'),
    ],
)
def test_every_line_of_the_policy_is_kept_even_for_an_approved_study(policy, change, said, tmp_path):
    asked = study(STUDY.replace(*change) if change[0] else STUDY)
    own = site(tmp_path, policy)
    own.approve(asked)
    found = objections(own, asked)
    assert any(said in words for words in found), found


def test_a_site_that_shares_no_sums_takes_part_with_scales_of_its_own(tmp_path):
    asked = study(STUDY.replace("min_level = 5", 'min_level = 5\nscale = "silo"'))
    own = site(tmp_path, "share_sums = false")
    own.approve(asked)
    assert objections(own, asked) == []


def test_company_is_counted_and_diluted(tmp_path):
    own = site(tmp_path, "min_others = 2\nmin_dilution = 0.5")
    assert company(own, 100, {"ash": 100, "birch": 60, "cedar": 60}) == []
    assert "1 other site takes part" in company(own, 100, {"ash": 100, "birch": 600})[0]
    assert "38% of all rows" in company(own, 100, {"ash": 100, "birch": 30, "cedar": 31})[0]
    assert len(company(own, 100, {})) == 2


def test_only_named_metrics_of_large_enough_groups_leave(tmp_path):
    own = site(tmp_path, 'metrics = ["accuracy"]\nmin_group = 10')
    assert allowed_metrics(own, 10, {"accuracy": 0.8, "log_loss": 0.3}) == {"accuracy": 0.8}
    assert allowed_metrics(own, 9, {"accuracy": 0.8}) == {}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("max_round = 3", "line 6: there is no field 'policy.max_round'; did you mean 'max_rounds'"),
        ("max_rounds = 0", "line 6: policy.max_rounds: should be greater than or equal to 1"),
        ('metrics = ["rows"]', "policy.metrics: there is no 'rows'"),
        ('algorithms = ["shell"]', "policy.algorithms: there is no 'shell'"),
    ],
)
def test_a_policy_with_a_mistake_is_refused_with_its_line(policy, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        site(tmp_path, policy)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"fedavg"', '"os.system"'), "line 8: study.algorithm: there is no 'os.system'"),
        (("batch = 8", "bach = 8"), "line 9: study.options.bach: fedavg has no option 'bach'; did you mean 'batch'"),
        (("lr = 0.1", "lr = -1"), "line 9: study.options: fedavg: lr must be"),
        (('"ash", ', '"../ash", '), "line 7: study.sites"),
        (('"ash", ', '"birch", '), "line 7: study.sites: birch is named twice"),
        (('"fedavg"', '"weight_erosion"'), "weight_erosion makes a model for one site: say user"),
        (("rounds = 20", "rounds = 20\n[terms]\ngoal = 4"), "line 12: terms.goal: 4 answers cannot come from 3 sites"),
        (("rounds = 20", "rounds = 20\nhidden = [8]"), "line 11: study.hidden: a linear model has no hidden layers"),
        (("rounds = 20", "rounds = 20\nnorm = true"), "line 11: study.norm: a linear model has no hidden layers"),
        (("rounds = 20", 'rounds = 20\nuser = "ash"'), "fedavg makes a model for every site: leave user out"),
        (
            ("rounds = 20", 'rounds = 20\ncompress = "zip"'),
            "line 11: study.compress: compress: 'zip' is not understood",
        ),
        (
            ('"fedavg"\noptions = { lr = 0.1, batch = 8 }', '"auto"\ncompress = "bits=8"'),
            "study.compress: auto sends sums",
        ),
        (('"fedavg"', '"fedamp"\ncompress = "bits=8"'), "study.compress: fedamp sends models"),
        (("rounds = 20", "rounds = 20\nstate_dir = '/etc'"), "there is no field 'study.state_dir'"),
        (("rounds = 20", 'rounds = 20\nnetwork = [["ash", "birch", 1.0]]'), "knows of no network"),
    ],
)
def test_a_study_with_a_mistake_is_refused_with_its_line(change, said):
    with pytest.raises(ValueError, match=said):
        study(STUDY.replace(*change))


def test_a_study_has_no_paths_and_its_name_is_its_hash(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(STUDY)
    assert read_study(file).hash == study().hash
    assert len(study().hash) == 64
    with pytest.raises(ValueError, match=r"there is no field 'data\.path'"):
        study(STUDY.replace("[data]", '[data]\npath = "/etc/passwd"'))


def test_the_list_of_algorithms_is_fixed():
    assert "auto" in known_algorithms()
    assert "weight_erosion" in known_algorithms()
    assert len(known_algorithms()) > 30


def test_proposals_are_kept_for_the_operator_and_are_not_too_many(tmp_path):
    policy = site(tmp_path)
    for number in range(5):
        policy.propose(study(STUDY + f"# {number}\n"), most=3)
    assert len(policy.proposals()) == 3
    assert all(study_of(file.read_bytes()).hash == hash for hash, file in policy.proposals().items())


def test_a_network_and_a_prior_are_given_by_names():
    text = STUDY.replace('"fedavg"', '"gtv_gd"').replace(", batch = 8", "")
    edges = 'network = [["ash", "birch", 1.0], ["birch", "cedar", 2.0]]'
    recipe = study(text.replace("rounds = 20", f"rounds = 20\n{edges}")).recipe()
    assert recipe.name == "gtv_gd"
    with pytest.raises(ValueError, match="there is no site 'oak'"):
        study(text.replace("rounds = 20", f"rounds = 20\n{edges.replace('birch', 'oak')}"))
    prior = study(STUDY.replace("batch = 8", "prior = { birch = 0.5 }")).recipe().hyper["prior"]
    assert prior.tolist() == [1.0, 0.5, 1.0]
