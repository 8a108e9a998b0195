"""Thresholds that trade time against time, in one place: value, unit and origin.

None of them changes what is solved, only how. Numbers that rounding or an algorithm dictates stand where they
are used. The origin is the program, and its problem, with which a value was chosen: "steps" is
``benchmarks/steps.py``, "peers" is ``benchmarks/peers.py``; "by hand" is a choice within a wide flat range.
"""

from __future__ import annotations

# -- precision of kernel rows -------------------------------------------------------------------

#: Rows of the largest problem up to which kernel values are float64 at once: checking float32 values would
#: cost more. [rows; peers: breast_cancer, digits]
DOUBLE_UP_TO = 512
#: The same where float32 is likely to be too rough for the tolerance. [rows; peers: german with C=1000]
DOUBLE_IF_ROUGH_UP_TO = 2048
#: Tolerance that float32 rows are asked for first; also the smallest for which a float32 factor of Newton's
#: method is used. [violation in LIBSVM's scaling; peers: a9a with tol 1e-6]
ROUGH = 1e-4
#: Factor of the tolerance each time after the gradient has been made exact. [by hand]
FINER = 1e-2
#: Kernel values up to which all entries of a gradient are recomputed to measure its error; otherwise up to
#: this share of the values computed so far. [kernel values; by hand]
RECOMPUTE_ALWAYS, RECOMPUTE_SHARE = 1 << 18, 0.1
#: Products that recomputing in double-double arithmetic may take (some seconds), and the time of one relative
#: to float64. [products, ratio; steps]
DOUBLE_DOUBLE_MOST, DOUBLE_DOUBLE_TIME = 1 << 28, 40.0

# -- threads ------------------------------------------------------------------------------------

#: Multiplications from which on problems run side by side. [multiplications; peers: digits, letter]
WORTH_A_TEAM = 30_000_000
#: Kernel values that a variable of a problem in one compiled call stands for. [kernel values; peers: digits]
VALUES_PER_VARIABLE = 100

# -- whole problems in one compiled call ----------------------------------------------------------

#: Values of the data in panels, and variables, up to which it is done. [values, variables; peers: digits]
WHOLE_MOST_VALUES, WHOLE_MOST_VARIABLES = 1 << 23, 4096
#: Pair steps per variable after which `Batch`'s loop goes on. [steps; by hand]
WHOLE_PATIENCE = 16
#: Regression: rows, and multiplications of the whole matrix, up to which it is done (some 20 ms).
#: [rows, multiplications; peers: friedman1]
REGRESSION_MOST_ROWS, REGRESSION_MOST_WORK = 2048, 400_000_000
#: Rows up to which pair steps are tried alone first, and how many per variable.
#: [rows, steps; peers: diabetes]
REGRESSION_FEW_ROWS, REGRESSION_FEW_STEPS = 512, 1
#: Pair steps per row after which `Batch`'s loop goes on. [steps; by hand]
REGRESSION_PATIENCE = 100

# -- the default solver -------------------------------------------------------------------------

#: Multiplications up to which a problem is in the working set as a whole (some 3 ms). [peers: breast_cancer]
AT_ONCE = 60_000_000
#: Variables from which on the working set is twice as large: size below, size above. [variables; peers: a9a]
LARGE_PROBLEM, WORKING_SET, LARGE_WORKING_SET = 10_000, 1024, 2048
#: Pair steps per variable of a whole problem after which convergence counts as slow, and those of a working
#: set in one iteration. [steps; by hand]
SLOW, MOST_STEPS = 16, 8
#: Seconds of an iteration, of a byte of a row in a pair step, and of a byte in a gradient update; nominal, so
#: that decisions do not depend on the clock. [seconds; steps]
ITERATION, STEP, UPDATE = 3e-4, 1.2e-10, 1e-10
#: Variables below which shrinking gains nothing; largest share of active variables and fewest iterations
#: still expected for which it pays. [variables, share, iterations; peers: a9a, ijcnn1]
SHRINK_FROM, SHRINK_SHARE, SHRINK_WORTH = 4096, 0.4, 20.0
#: How far beyond the range of the violators, in units of its width, a variable stays active; factor by which
#: the violation must fall before active variables are chosen again. [by hand]
SHRINK_MARGIN, SHRINK_FALL = 0.5, 0.1
#: Finishes of a whole problem at most, from how many variables on, and at which tolerances.
#: [finishes, variables, violation; peers: german with C=1000]
FINISHES, FINISH_FROM, FINISH_TOL = 4, 200, 5e-5
#: Free variables for which a Newton step is considered, and the largest matrix. [variables, bytes; by hand]
NEWTON_FEWEST, NEWTON_MOST, NEWTON_BYTES = 16, 8192, 1 << 28
#: Share of the free variables that may change in an iteration when Newton steps begin to pay.
#: [share; peers: a9a with C=100]
NEWTON_CHANGING = 0.015
#: Floating-point operations per second and thread of a Cholesky factorisation, by bytes of a number.
#: [1/s; by hand]
CHOLESKY_SPEED = {4: 5e10, 8: 2.5e10}
#: Multiplications that a finish by gradient projection may take. [multiplications; papers/rosen.py]
PROJECTION_MOST = 4_000_000_000
