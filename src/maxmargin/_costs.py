"""Thresholds of kernels and of kernel rows that trade time against time: value, unit and origin.

Those of the solvers are in `maxmargin.solvers.costs`, which explains the origins, and what to do about cached
code after a change.
"""

from __future__ import annotations

# -- threads ------------------------------------------------------------------------------------

#: Multiplications below which a second thread costs more than it saves. [some 0.5 ms; not tuned]
WORTH_A_THREAD = 20_000_000

# -- layout of data -----------------------------------------------------------------------------

#: Share of non-zeros below which the sparse product is faster than the dense one: on mnist and covtype, whose
#: rows have 150 of 784 and 12 of 54 values, it takes half the time. [share; mnist, covtype]
SPARSE_BELOW = 0.3
#: Features from which on a dense array is looked at for zeros, and how many of its rows. [features, rows; not
#: tuned]
SPARSE_FEATURES, SPARSE_ROWS = 32, 200
#: Values that are copied or added at a time: they stay in the second-level cache, also where a copy changes
#: their order. [values; 300,000 x 100 in Fortran order: 1 << 13 to 1 << 18 are as fast]
COPIED_VALUES = 1 << 16
#: Time of reading an entry of the samples from memory for a product, relative to a multiplication within a
#: cache, by which slices of work are measured. [ratio; by hand: 30 million entries,
#: some 0.03 s, are one slice]
PRODUCT_TIME = 3.0
#: The same of copying an entry to memory that was not used before, of which the operating system clears each
#: page first. [ratio; by hand, not tuned]
COPY_TIME = 20.0
#: Columns of sparse data up to which memory is negligible: a panel of 16 float64 values each takes 2 MB.
#: [columns; not tuned]
FEW_COLUMNS = 1 << 14
#: Columns per entry up to which marking columns is faster than sorting the entries. [columns; not tuned]
MARKED_COLUMNS = 8
#: Entries whose columns are marked before those found are counted. [entries; not tuned]
MARKED_AT_ONCE = 1 << 18
#: Features up to which sparse rows are made dense to find the nearest ones. [features; not tuned]
DENSE_NEAREST = 2000
#: Products that are computed at once to find the nearest rows, and the passes over them in units of features.
#: [products, features; not tuned]
NEAREST_TILE, NEAREST_PASSES = 1 << 18, 32

# -- tiles: sizes that fit a cache --------------------------------------------------------------

#: Rows and columns of a tile of kernel values: half a megabyte in float32, which fits the second-level cache
#: of a core. [rows, columns; not tuned]
TILE_ROWS, TILE_COLUMNS = 128, 1024
#: Values of a panel of dense columns for the sparse product, for the same reason. [values; not tuned]
PANEL_VALUES = 1 << 17
#: Features up to which dense panels are faster than BLAS, and the largest panels.
#: [features, bytes; not tuned]
NARROW, PANELS_BYTES = 64, 1 << 27
#: Columns above which sparse rows are multiplied by an inverted index and not by panels of all columns: with
#: 1,000 columns of text the index takes 0.7 of the time, with 500 1.15. [columns; text, a9a, w8a]
PANEL_COLUMNS = 1024
#: Share of the samples in which a column of an index occurs if it is laid out densely. Half or twice as much
#: changes the time by less than a tenth. [share; text]
FREQUENT = 0.05
#: Samples of a tile of an index at least, so that short lists do not begin too often, and values of a buffer
#: of rows, which fits the second-level cache. [samples, values; text]
INDEX_TILE, INDEX_BUFFER = 2048, 1 << 17
#: Size of a copy of the samples in panels above which none is kept: tiles of columns are laid out anew for
#: each sum of rows. [bytes; for memory, see docs/notes/speed.md for the time]
STREAMED_BYTES = 1 << 26
#: Columns of such a tile in panels, half a megabyte with 54 features, and in an inverted index.
#: [columns, columns; not tuned]
STREAMED_COLUMNS, STREAMED_LISTS = 2048, 8192
#: Rows that are multiplied by a panel before the next: their tile stays in the second-level cache.
#: [rows; not tuned]
PANEL_ROWS = 512
#: A tile of an expansion: samples, and support vectors. [rows, columns; not tuned]
EXPANSION_ROWS, EXPANSION_COLUMNS = 256, 2048
#: Given values that are read for a tile: a megabyte. [values; precomputed, 3,000 rows, 10 classes]
EXPANSION_GIVEN = 1 << 17
#: Rows and columns of a streamed tile, which is used once. [rows, columns; not tuned]
STREAM_ROWS, STREAM_COLUMNS = 256, 2048
#: Samples from elsewhere that are prepared at a time for sums with them. [rows; not tuned]
FOREIGN_ROWS = 4096
#: Rows of dense data that are gathered at a time for a product with weights. [rows; not tuned]
WEIGHTS_ROWS = 2048
#: Share of the rows above which a product with all of them takes less than gathering some. [share; not tuned]
WEIGHTS_GATHERED = 0.25
#: Runs of columns above which a sum is computed for all columns. [runs; not tuned]
MOST_RUNS = 64
#: Share of the rows (one in so many) up to which reading their values one by one is faster than adding rows.
#: [rows per row; not tuned]
FEW_ROWS = 8
#: Values of a large matrix in Fortran order that are compared with their mirror images. [values; some 0.3 ms]
MIRRORED_VALUES = 1 << 13
#: Columns of a slice of kernel rows at least; no tile is wider. [columns; not tuned]
SLICE_COLUMNS = 512
#: Length of a row from which on alignment to cache lines is worth its padding. [values; not tuned, the gain
#: of alignment is in docs/notes/speed.md]
ALIGNED_FROM = 1024
#: Largest table in which each row has a place of its own from the start. [bytes; covtype with 20,000 rows, of
#: which some 3,500 are kept: a table of 1.6 GB, nearly all of whose pages were cleared]
UNPACKED_BYTES = 1 << 26
#: Kernel matrices of different parameters that are kept. [matrices; not tuned]
KEPT_MATRICES = 2
#: Rows of a square tile of distances, which stays in the second-level cache. [rows; not tuned]
DISTANCE_TILE = 256

# -- certificates -------------------------------------------------------------------------------

#: Variables from which on a quantile is selected, not found by sorting, which takes four times as long
#: (300,000 in 20 ms). [variables; not tuned]
SELECTED_FROM = 1 << 14
