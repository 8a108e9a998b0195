"""A few thousand damaged and hostile files; benchmarks/fuzz_models.py does it a hundred thousand times."""

import sys
import warnings
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def mutations():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import mutations
    finally:
        sys.path.remove(str(BENCHMARKS))
    return mutations


@pytest.fixture(scope="module")
def base(mutations):
    return mutations.files()


def test_files_that_are_left_alone_predict(mutations, base):
    for form, files in base.items():
        for data in files.values():
            assert mutations.outcome(form, data) == "predicts"


@pytest.mark.parametrize("block", range(8))
def test_nothing_but_a_model_file_error_comes_of_a_mutated_file(mutations, base, block):
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers may overflow
        for index in range(500 * block, 500 * (block + 1)):
            form, _, way, data = mutations.mutation(base, 1, index)
            seen.add((form, way, mutations.outcome(form, data)))
    ways = {(form, way) for form, ways in mutations.MUTATIONS.items() for way in ways}
    assert {(form, way) for form, way, result in seen if result == "refused"} == ways
