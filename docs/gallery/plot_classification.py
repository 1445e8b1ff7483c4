"""
Classification: income classes, one row at a time
=================================================

Predict a class and its probability online. The stream is an excerpt of the Adult data set: 5,000 persons
with eight text columns.
"""

# %%
# A classifier has the protocol of a regressor, and ``predict_proba_one``. Text columns need no encoding.

import csv
import gzip
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from sapwood import ForestClassifier, HoeffdingTreeClassifier

DATA = Path("data") if Path("data").is_dir() else Path("docs/gallery/data")
with gzip.open(DATA / "adult.csv.gz", "rt", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
numbers = {"age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hr_per_week"}
labels = [row.pop("income") for row in rows]
persons = [{k: float(v) if k in numbers else v for k, v in row.items()} for row in rows]

# %%
# Prequential evaluation: each row is predicted first, then learned.


def correct(model):
    """Return for each row whether its class was predicted."""
    found = []
    for person, label in zip(persons, labels, strict=True):
        found.append(model.predict_one(person) == label)
        model.learn_one(person, label)
    return np.array(found)


models = {"tree": HoeffdingTreeClassifier(), "forest": ForestClassifier(seed=1)}
hits = {name: correct(model) for name, model in models.items()}
most_frequent = max(labels.count(each) for each in set(labels)) / len(labels)
for name, each in hits.items():
    print(f"{name}: accuracy {each.mean():.3f}, always the most frequent class {most_frequent:.3f}")
print(models["forest"].predict_proba_one(persons[0]))

# %%
# Accuracy over the last 500 rows:

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, each in hits.items():
    ax.plot(np.convolve(each, np.full(500, 1 / 500), "valid"), label=name)
ax.axhline(most_frequent, color="grey", linestyle=":", label="most frequent class")
ax.set(xlabel="rows", ylabel="accuracy, last 500 rows")
ax.legend()
