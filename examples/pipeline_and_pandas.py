"""
A data frame with numbers and categories, a pipeline, and a search over it
==========================================================================

The estimators are scikit-learn's in every respect: they take data frames and string labels, and they work
behind transformers. `SVMSearchCV` searches the whole pipeline.
"""

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV

wine = load_wine(as_frame=True)
frame = wine.data.copy()
# A category, for the sake of the example.
frame["colour"] = pd.cut(frame.pop("color_intensity"), [0, 3, 6, 99], labels=["pale", "medium", "deep"])
label = wine.target_names[wine.target]

numbers = frame.columns.drop("colour")
columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(), ["colour"]))
pipeline = make_pipeline(columns, SVC())

train, test, label_train, label_test = train_test_split(frame, label, stratify=label, random_state=0)
search = SVMSearchCV(pipeline, {"svc__C": [0.1, 1.0, 10.0], "svc__gamma": [0.01, 0.03, 0.1]})
search.fit(train, label_train)

print("best:", search.best_params_)
print(f"accuracy in cross-validation {search.best_score_:.3f}")
print(f"accuracy on other wines {search.score(test, label_test):.3f}")
machine = search.best_estimator_[-1]
for name, count in zip(machine.classes_, machine.n_support_, strict=True):
    print(f"{name}: {count} support vectors")
