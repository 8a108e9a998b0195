"""Three ways to train a chain of nodes; the first that can take it trains it.

`CPath` is compiled code for hinge SVCs and SVRs along C, `WarmFits` the estimator's own `fit` on the shared
kernel matrix, `ScikitLearn` scikit-learn's own way, which takes everything and reports errors as
`GridSearchCV` does.
"""

from maxmargin.model_selection.trainers.base import Trainer
from maxmargin.model_selection.trainers.c_path import CPath
from maxmargin.model_selection.trainers.scikit_learn import ScikitLearn
from maxmargin.model_selection.trainers.warm_fits import WarmFits

#: The trainers in the order in which they are asked.
TRAINERS: tuple[Trainer, ...] = (CPath(), WarmFits(), ScikitLearn())
