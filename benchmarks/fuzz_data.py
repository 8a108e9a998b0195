"""Data files that were damaged, or made to do harm: does anything but `DataError` come of them?

    python benchmarks/fuzz_data.py                        # 40,000 mutations, half an hour
    python benchmarks/fuzz_data.py --quick                # 500
    python benchmarks/fuzz_data.py --seed 3 --only 1234   # a single one again, here and now

Files of every format are mutated (see data_mutations.py): by chance, packed, and on purpose: archives whose
arrays declare other shapes and types, encryption, bombs, long lines, marks and encodings. Each is read with
a limit of 64 MB, in processes of their own, as fuzz_models.py does it. A process that dies, an exception that
is no DataError, a message of several lines, too much memory or too much time is a failure.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_models import main

if __name__ == "__main__":
    main("data_mutations", "Damaged and hostile data files", 40_000, __doc__ or "")
