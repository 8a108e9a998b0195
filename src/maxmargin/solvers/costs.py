"""Thresholds that trade time against time, in one place: value, unit and origin.

None of them changes what is solved, only how. Numbers that rounding or an algorithm dictates stand where they
are used; thresholds of kernels and of their rows, which come before the solvers, are in `maxmargin._costs`.
The origin is the program, and its problem, with which a value was chosen: "steps" is
``benchmarks/steps.py``, "peers" is ``benchmarks/peers.py``; "by hand" is a choice within a wide flat range.
"Not tuned" is chosen by hand, not tuned: other values may be better.

Compiled code contains the values that it uses, and Numba compares a cached function with its own file only:
after a change here, delete the ``*.nbi`` files in the folders ``__pycache__`` of ``solvers``.
"""

from __future__ import annotations

# -- precision of kernel rows -------------------------------------------------------------------

#: Rows of the largest problem up to which kernel values are float64 at once, because checking float32 values
#: would cost more: of a single problem that is solved in one compiled call, and of others.
#: [rows; peers: breast_cancer, diabetes; digits]
DOUBLE_UP_TO, DOUBLE_ELSE_UP_TO = 256, 512
#: The same where float32 is likely to be too rough for the tolerance. [rows; peers: german with C=1000]
DOUBLE_IF_ROUGH_UP_TO = 2048
#: Tolerance that float32 rows are asked for first; also the smallest for which a float32 factor of Newton's
#: method, and a float32 matrix of a search, is used.
#: [violation in LIBSVM's scaling; peers: a9a with tol 1e-6]
ROUGH = 1e-4
#: Factor of the tolerance each time after the gradient has been made exact. [by hand]
FINER = 1e-2
#: Kernel values up to which all entries of a gradient are recomputed to measure its error; otherwise up to
#: this share of the values computed so far. [kernel values; by hand]
RECOMPUTE_ALWAYS, RECOMPUTE_SHARE = 1 << 18, 0.1
#: Products that recomputing in double-double arithmetic may take (some seconds), and the time of one relative
#: to float64. [products, ratio; steps]
DOUBLE_DOUBLE_MOST, DOUBLE_DOUBLE_TIME = 1 << 28, 40.0
#: Rows up to which a single problem gets a copy of a given kernel matrix in its own order, so that one
#: compiled call can solve it; with 2,000 rows the copy costs more than that saves. [rows; by hand]
COPIED_UP_TO = 1024

# -- threads ------------------------------------------------------------------------------------

#: Multiplications from which on problems run side by side. [multiplications; peers: digits, letter]
WORTH_A_TEAM = 30_000_000
#: Kernel values that a variable of a problem in one compiled call stands for. [kernel values; peers: digits]
VALUES_PER_VARIABLE = 100

# -- whole problems in one compiled call ----------------------------------------------------------

#: Values of the data in panels, and variables, up to which it is done. [values, variables; peers: digits]
WHOLE_MOST_VALUES, WHOLE_MOST_VARIABLES = 1 << 23, 4096
#: Rows of the largest problem up to which it is done with a complete matrix, for kernels other than rbf: the
#: largest working set, for which the loop would compute it too. [rows]
WHOLE_TABLE_MOST_ROWS = 2048
#: Pairs of many classes: pair steps that each may take always, which last as long as the start of a loop
#: would; places of rows (samples times classes) of which a thread may have a table. [steps, places; by hand]
PAIRS_FEWEST_STEPS, PAIRS_MOST_PLACES = 8000, 1 << 24
#: Pair steps per variable after which `Batch`'s loop goes on, and how many there may be always.
#: [steps; by hand, not tuned]
WHOLE_PATIENCE, WHOLE_FEWEST_STEPS = 16, 1000
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
#: Variables from which on a working set may have a size; a set of more than 2,048 must have this number of
#: non-zero variables per place, too. [variables and places, variables; peers: a9a, cod-rna; growth]
WORKING_SETS, WORKING_SET_SUPPORT = ((0, 1024), (10_000, 2048), (40_000, 4096), (100_000, 8192)), 2
#: Newcomers to a working set on each side: one in so many of its places. [not tuned]
NEWCOMERS = 6
#: Share of the violation to which a part of the problem is solved, in a working set or a block of a path.
#: [share; peers: 0.05, 0.2 and 0.3 are no better, see docs/notes/speed.md; in a path not tuned]
INNER = 0.1
#: Pair steps per variable of a whole problem after which convergence counts as slow, and those of a working
#: set in one iteration. [steps; by hand]
SLOW, MOST_STEPS = 16, 8
#: Time of a row in a step along a cycle of pair steps, whose rows are in a cache of the processor.
#: [pair steps; friedman1, 4,000 rows, C=100, five seeds: with 0.1, 0.2 and 0.3 it takes 0.72, 0.69 and 0.68
#: of the pair steps without cycles]
CYCLE_ROW = 0.25
#: Updates of the longest cycle that is recognised, here and in the papers' algorithms; a power of two.
#: [updates; friedman1: 128 is worse, 512 is no better]
CYCLE = 256
#: Seconds of an iteration, of a byte of a row in a pair step, and of a byte in a gradient update; nominal, so
#: that decisions do not depend on the clock. [seconds; steps]
ITERATION, STEP, UPDATE = 3e-4, 1.2e-10, 1e-10
#: Variables below which shrinking gains nothing; largest share of active variables and fewest iterations
#: still expected for which it pays. [variables, share, iterations; peers: a9a, ijcnn1]
SHRINK_FROM, SHRINK_SHARE, SHRINK_WORTH = 4096, 0.4, 20.0
#: How far beyond the range of the violators, in units of its width, a variable stays active; factor by which
#: the violation must fall before active variables are chosen again. [by hand]
SHRINK_MARGIN, SHRINK_FALL = 0.5, 0.1
#: Share of the violation at its beginning with which variables that were left out come back: shrinking was of
#: no use, and is not tried again. [share; not tuned]
SHRINK_BACK = 0.5
#: Finishes of a whole problem at most, from how many variables on, and at which tolerances.
#: [finishes, variables, violation; peers: german with C=1000]
FINISHES, FINISH_FROM, FINISH_TOL = 4, 200, 5e-5
#: Violation at which pair steps on a whole problem first give way to a finish, and the share of the present
#: one at which they do so again. [violation in LIBSVM's scaling, share; not tuned]
STAGE, STAGE_FALL = 3e-3, 0.1
#: Iterations between two finishes of a problem that is not in the working set as a whole. [not tuned]
FINISH_EVERY = 5
#: Free variables for which a Newton step is considered, and the largest matrix. [variables, bytes; by hand]
NEWTON_FEWEST, NEWTON_MOST, NEWTON_BYTES = 16, 8192, 1 << 28
#: Share of the free variables that may change in an iteration when Newton steps begin to pay.
#: [share; peers: a9a with C=100]
NEWTON_CHANGING = 0.015
#: Largest cost of a Newton step, as a share of the time that pair steps are expected to need still; after a
#: failure, of all that Newton steps have cost, as a share of the work so far. [shares; not tuned]
NEWTON_PAYS, NEWTON_RETRY = 0.5, 0.1
#: Seconds of a Newton step besides its factorisation. [seconds; not tuned]
NEWTON_STEP = 1e-3
#: Rounds in which variables are put on their bounds with one factor, and of how many variables one may be put
#: there before another factor is the better choice. [rounds, variables; not tuned]
NEWTON_ROUNDS, NEWTON_SHARE = 6, 8
#: Floating-point operations per second and thread of a Cholesky factorisation, by bytes of a number.
#: [1/s; by hand]
CHOLESKY_SPEED = {4: 5e10, 8: 2.5e10}
#: Rows of a matrix that LAPACK factors in one call, and of a block of a larger one: a deadline waits as long.
#: [rows; not tuned]
CHOLESKY_AT_ONCE, CHOLESKY_BLOCK = 1536, 512
#: Time of a product in the solution for one column, relative to one in a slice of work (`_compiled.limits`).
#: [ratio; not tuned]
CHOLESKY_SOLVE = 0.2
#: Smoothing of the first proximal step, in units of the violation at its start. [ratio; a9a, covtype, ijcnn1]
PROXIMAL_START = 2.5
#: Newton steps for weights, at most and typically. [steps; a9a, covtype, ijcnn1]
PROXIMAL_MOST, PROXIMAL_TYPICAL = 300, 60
#: The same, typically, of squared slacks. [steps; a9a, covtype, ijcnn1]
PRIMAL_TYPICAL = 12
#: Features up to which they are taken at the beginning, if there are so many variables per feature; and up to
#: which they are taken at all. [features, variables, features; a9a, w8a, covtype, ijcnn1]
PROXIMAL_AT_ONCE, PROXIMAL_ROWS, PROXIMAL_FEATURES = 150, 50, 1000
#: Seconds of a product in such a step, passes over the variables in units of products, and seconds per entry
#: of its matrix. [seconds, products, seconds; not tuned]
PROXIMAL_PRODUCT, PROXIMAL_PASSES, PROXIMAL_MATRIX = 1e-9, 40, 2e-8
#: Coordinate descent: the largest share of non-zeros for which it is taken; the penalty of the sums, relative
#: to a mean curvature; passes at most, and those by which their pace is judged.
#: [share, ratio, passes, passes; text, w8a]
DESCENT_DENSITY, DESCENT_PENALTY, DESCENT_PASSES, DESCENT_SPAN = 0.01, 0.1, 150, 10
#: Time of an entry of a sample in such a pass, in multiplications of a slice of work (`_compiled.limits`).
#: [ratio; by hand, not tuned]
DESCENT_ENTRY = 20.0
#: Multiplications that a finish by gradient projection may take. [multiplications; papers/rosen.py]
PROJECTION_MOST = 4_000_000_000
#: Steps of it per free variable at most. [steps; not tuned]
PROJECTION_STEPS = 4
#: Steps of gradient projection after slow pair steps: at least, and for each pair step per free variable.
#: [steps; not tuned]
PROJECTION_FEWEST, PROJECTION_PER_PAIR = 10, 3

# -- paths along C ------------------------------------------------------------------------------

#: Nominal microseconds of a Newton step: cubed free variables per microsecond, and the time per squared free
#: variable and per row. [1/us, us, us; not tuned]
PATH_CUBES, PATH_SQUARE, PATH_ROW = 3e4, 5e-3, 0.1
#: Nominal microseconds of a pair step: per row of the block, and besides. [us; not tuned, close to STEP
#: for float32]
PATH_STEP_ROW, PATH_STEP = 0.4e-3, 0.1
#: Variables of a Newton step at most, and free variables below which one is tried among many violators.
#: [variables; not tuned]
PATH_NEWTON_MOST, PATH_NEWTON_FEW = 3000, 1000
#: Pair steps of a round: at least, per row of the block at most, and in Newton steps of the same duration.
#: [steps, steps, Newton steps; not tuned]
PATH_FEWEST_STEPS, PATH_MOST_STEPS, PATH_NEWTON_STEPS = 300, 4.0, 2.0
#: Time of pair steps, in Newton steps, after which one is tried; share of the violation to which it must lead
#: for another to follow at once. [Newton steps, share; not tuned]
PATH_SPENT, PATH_NEWTON_AGAIN = 0.3, 0.7
#: Columns of the inverse computed together, and variables that may be put on their bounds with one factor.
#: [columns, variables; not tuned]
PATH_COLUMNS, PATH_FIXED = 16, 512
#: Rows of the largest block, the share of them that may be free, and violators at a bound that a block
#: includes besides half as many as there are free variables. [rows, share, variables; not tuned]
PATH_BLOCK, PATH_BLOCK_FREE, PATH_VIOLATORS = 2048, 0.9, 256
#: Rows up to which pair steps use the matrix itself, and go on to the tolerance. [rows; not tuned, pairs of
#: digits have 200, of letter 120]
PATH_SMALL = 256
#: Share of all rows above which pair steps use the matrix itself; variables in a block that are no longer
#: wanted, per wanted one, above which they are removed. [shares; not tuned]
PATH_DIRECT, PATH_UNUSED = 0.65, 0.5
#: Variables at a bound per free one below which the multipliers are kept when C grows, and above which the
#: fold before is the better start. [ratios; not tuned]
PATH_KEEP, PATH_FROM_FOLD = 0.1, 30.0
#: Rows whose decision values are computed together: their kernel values stay in the cache. [rows; not tuned]
PATH_HELD_OUT = 512
#: Solutions of class pairs that are held before decision values are computed from all of them: 32 MB of
#: variables. [variables; not tuned]
PATH_PAIR_VALUES = 1 << 22

# -- the papers' algorithms ---------------------------------------------------------------------

#: Multiplications, or kernel values used, between two looks at the clock. [some 0.05 s; not tuned]
LOOK = 50_000_000
#: Entries of gradients updated between two checkpoints of a pair method, and its iterations at least.
#: [entries, iterations; not tuned]
FETCH_VALUES, FETCH_FEWEST = 20_000_000, 32
#: Rows of further violators that are computed with a missing one; one part in so many of the cache at most.
#: [rows, parts; not tuned]
PREFETCH, PREFETCH_PART = 16, 4
#: Entries of a gradient whose extremes are found together; one such range is then searched for the place.
#: [entries; not tuned]
HULL_RANGE = 128
#: Steps of Gilbert's algorithm per vertex before wrong vertices are removed. [steps; not tuned]
SWEEP_STEPS = 20
#: Gradient projection: variables of a block at most, those released at first on each side, and those of a
#: problem that is one block where directions are conjugate. [variables; not tuned]
FACE_MOST, FACE_FIRST, FACE_WHOLE = 2048, 1024, 1024
#: Its steps between two looks at the clock: at most, and at least where directions are conjugate.
#: [steps; not tuned]
FACE_STEPS, FACE_FEWEST_STEPS = 20_000, 64
#: Crammer and Singer: samples that may join a working set at once, and a part of all that may; share of the
#: violation at which it is left; share of the last working set that the next needs for its values to be used
#: as they are. [samples, parts, share, share; letter and digits, by hand]
SAMPLES, SAMPLES_PARTS, SAMPLES_ENOUGH, SAMPLES_KEPT = 1024, 4, 0.1, 0.7
#: Share of new samples below which conjugate gradients follow. [share; letter, by hand]
SAMPLES_STABLE = 0.1
#: Kernel values of a working set, or of the blocks of a face, at most: 256 MB in float32. [values; not tuned]
SAMPLES_VALUES = 1 << 26
#: Passes over its samples before the first face and between two of them, and their most turns.
#: [passes, passes, turns; letter and digits, by hand]
SAMPLES_PASSES, SAMPLES_BETWEEN, SAMPLES_TURNS = 80, 2, 30
#: Conjugate steps on a face. [steps; not tuned]
SAMPLES_ON_FACE = 2000
#: Rows of the kernel matrix per product. [rows; not tuned]
SAMPLES_ROWS = 1024
#: What is reserved of a time limit for the end of a run: passes over the values of a linear kernel's data,
#: and the certificate. [seconds per value, seconds per variable; not tuned]
LAST_PASSES, LAST_VARIABLE = 1.2e-8, 1.5e-7
#: Variables up to which rounding errors are measured although the time is up. [variables; some 0.02 s]
MEASURED_LATE = 100_000
#: SimpleSVM: violators learnt between two updates of all gradients; candidates seen before the clock is read,
#: at least. [violators, candidates; not tuned]
CANDIDATES, CANDIDATES_FEWEST = 256, 256
#: Its block form: violators let in while S is small, of how many variables one may be put on a bound with one
#: factor, and factorisations of a step. [variables, variables, factorisations; not tuned]
BLOCK_FIRST, BLOCK_SHARE, BLOCK_FACTORS = 256, 16, 6
#: Share of the violation to which a block step must lead; steps that fail to, after which single violators
#: are learnt. [share, steps; not tuned]
BLOCK_FALL, BLOCK_IDLE = 0.9, 3
#: Share of the first violation at which its coarse run of `Batch` ends (0.5 to 0.015 all lead to 0 to 3
#: rounds, in about the same time), and members of S above which `Batch` goes on to the end (with 3,500 the
#: factor takes several times as long as all of `Batch`). [share, variables; docs/notes/speed.md]
BLOCK_COARSE, BLOCK_MOST = 0.15, 4096
#: Samples of each side among which the closest pair is looked for, by distances or by kernel values.
#: [samples; not tuned]
CLOSEST, CLOSEST_BY_KERNEL = 16_384, 1024
#: GeometricSVM: steps between two checkpoints; rows whose gradients are computed together. [steps, rows; not
#: tuned]
PLANE_STEPS, PLANE_ROWS = 64, 1024

# -- learning and unlearning rows ---------------------------------------------------------------

#: Violators that are learnt one by one, and support vectors that are unlearnt so; with more, a solver is
#: faster. [rows; not tuned]
EXACT_FEW = 64
#: Pair steps per row after which exact steps take over from the solver. [steps; not tuned]
EXACT_APPROACH = 2000
#: Rows of kernel values that are computed at a time; places that are always kept. [rows; not tuned]
EXACT_ROWS, EXACT_PLACES = 512, 64
#: Leave-one-out: attempts to change many rows at once before they change one by one; rows of a thread at
#: least. [attempts, rows; not tuned]
LEFT_OUT_TRIES, LEFT_OUT_ROWS = 8, 16
