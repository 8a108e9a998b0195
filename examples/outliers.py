"""Two machines for outliers.

`OneClassSVM` bounds the share of outliers by nu; rows on the boundary itself may be counted on either side.
`L2OneClassSVM` penalises squared slacks: the outliers among the training rows are just its support vectors.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from maxmargin import L2OneClassSVM, OneClassSVM

X, _ = make_moons(300, noise=0.08, random_state=0)
models = {
    "OneClassSVM(nu=0.1)": OneClassSVM(nu=0.1, gamma=4.0),
    "L2OneClassSVM(C=30)": L2OneClassSVM(C=30.0, gamma=4.0),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X)
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="decision_function", cmap="Greys", alpha=0.5, ax=ax
    )
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="decision_function",
        plot_method="contour",
        levels=[0],
        colors="black",
        ax=ax,
    )
    ax.scatter(*X.T, s=8, c=model.predict(X), cmap="coolwarm_r")
    ax.set_title(name)
    print(f"{name}: {(model.predict(X) == -1).mean():.0%} outliers, {len(model.support_)} support vectors")
plt.show()
