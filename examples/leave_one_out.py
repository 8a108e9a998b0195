"""The choice of C by exact leave-one-out.

`IncrementalSVC.leave_one_out` gives the decision value of each row under a machine trained on all others. For
every C that is one fit and one matrix inversion, not n trainings.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from maxmargin import IncrementalSVC

X, y = make_classification(400, 10, n_informative=6, flip_y=0.1, random_state=0)
sign = 2 * y - 1
values = np.logspace(-2, 3, 16)
training, held_out = [], []
for C in values:
    model = IncrementalSVC(C=C, gamma=0.05).fit(X, y)
    training.append(float((model.decision_function(X) * sign <= 0).mean()))
    held_out.append(float((model.leave_one_out() * sign <= 0).mean()))
best = int(np.argmin(held_out))
print(f"least leave-one-out error: {held_out[best]:.3f} at C = {values[best]:.2g}")

figure, ax = plt.subplots(figsize=(6, 3.6))
ax.semilogx(values, held_out, "-", label="leave-one-out")
ax.semilogx(values, training, "--", label="training")
ax.plot(values[best], held_out[best], "o", color="black")
ax.set(xlabel="C", ylabel="error")
ax.legend()
plt.show()
