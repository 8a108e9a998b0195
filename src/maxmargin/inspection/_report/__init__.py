"""One page about a fitted model.

`build` puts the parts together: `subject` (the model), `origin` (whether rows have trained it), `evaluation`
and `folds` (predictions), `refits` (learning curve, importance), `measures` (numbers), `of_search`,
`of_predictions` and `of_model` (sections), `summary`, `figures`, `markup` and `page` (SVG and HTML).
"""

from maxmargin.inspection._report.build import Report, report

__all__ = ["Report", "report"]
