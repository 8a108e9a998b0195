"""Step 2, from kernel values to rows of the Gram matrix, computed in batches and cached within a budget.

>>> from maxmargin.gram import Gram
"""

from maxmargin.gram.gram import Gram

__all__ = ["Gram"]
