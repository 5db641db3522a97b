"""Heart disease in four hospitals: which of them should learn with whom, and is it worth it?

Run it as a script, or cell by cell in an editor that knows `# %%`. The rows (UCI, 920 patients) come from the folder
`heart_disease` of the one that the variable CONFRERE_DATA names; without it they are downloaded. The variable SEEDS
says over how many random halves the comparison goes (10; a few minutes).
"""

# %% The four hospitals, before any training
import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import confrere as cf
from confrere.data.overview import overview
from confrere.saved import load_model, save_model

SEEDS = int(os.environ.get("SEEDS", "10"))

silos = cf.data.heart_disease()
for name, found in overview(silos)["silos"].items():
    print(
        f"{name}: {found['rows']} patients, {found['label']}; not recorded: {', '.join(found['absent']) or 'nothing'}"
    )
print(f"{len(silos.shared)} quantities left the hospitals so that their features agree, for example:")
for entry in silos.shared[:3]:
    print(f"    {entry.silo}: {entry.what} ({entry.count}), {entry.why}")

# %% A model of its own for each hospital: half of the rows are set aside first
halves = silos.split(test=0.5, seed=0)
answers = {name: cf.personalise(halves, name, others="train") for name in halves.names}
for name, answer in answers.items():
    print(f"\n{name}: {answer.reason}")

# %% Is it worth it? Over random halves, beside the best of training alone and FedAvg, its learning rate tuned
# ("auto" is evidence-weighted borrowing for linear models, so the study runs that algorithm.)
fedavg = partial(cf.fedavg, batch=None, steps=5, order="full")
methods = {"auto": cf.evidence, "ridge_local": cf.ridge_local, "fedavg": fedavg}
study = cf.Study(silos, cf.models.logistic(), methods, seeds=SEEDS, grid={"lr": [0.1, 0.3, 1.0]}, others="train")
result = study.run()
print(result.table("accuracy", by="all").select("algorithm", "mean"))
if SEEDS > 2:  # two splits have no interval
    for rival in ("ridge_local", "fedavg"):
        paired = result.paired("auto", rival, "accuracy")
        for row in paired.iter_rows(named=True):
            print(
                f"{row['user']}: {row['difference']:+.3f} against {rival}, 95 % [{row['low']:+.3f}, {row['high']:+.3f}]"
            )

# %% The same as a scikit-learn estimator, on rows of features
train = [silo.rows("train") for silo in halves.silos]
X, y = np.concatenate([rows for rows, _ in train]), np.concatenate([labels for _, labels in train])
hospital = np.repeat(halves.names, halves.sizes("train"))
classifier = cf.PersonalizedClassifier().fit(X, y, silo=hospital)
for name in halves.names:
    rows, labels = halves[name].rows("test")
    shares = {other: f"{share:.0%}" for other, share in classifier.weights_[name].items()}
    print(f"{name}: accuracy {classifier.score(rows, labels, silo=name):.3f}, listened to {shares}")

# %% Save one hospital's model with its manifest and card, load it elsewhere, predict
with tempfile.TemporaryDirectory() as folder:
    saved = save_model(answers["va"], halves, Path(folder) / "va")
    loaded = load_model(saved)
    rows, labels = halves["va"].rows("test")
    print(f"\n{', '.join(sorted(file.name for file in saved.iterdir()))}")
    chances = zip(loaded.model.label_names, loaded.model.predict_proba(rows[:1])[0], strict=True)
    print(f"va, first test patient: {', '.join(f'{label} {chance:.3f}' for label, chance in chances)}")
    right = loaded.model.predict(rows) == np.array(silos.label_names)[labels]
    print(f"va, all test patients: {right.mean():.3f} predicted right")
