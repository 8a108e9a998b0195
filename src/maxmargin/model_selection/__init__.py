"""Search for the parameters of support vector machines.

>>> from maxmargin.model_selection import SVMSearchCV
"""

from maxmargin.model_selection.search import SVMSearchCV

__all__ = ["SVMSearchCV"]
