# -- matplotlib ------------------------------------------------------------------------------


def test_without_matplotlib_the_extra_is_named(monkeypatch, runs):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"SearchDisplay needs matplotlib.*maxmargin\[plot\]"):
        SearchDisplay.from_search(searched({"C": [1, 2], "gamma": [1, 2]}))
    with pytest.raises(ImportError, match=r"TraceDisplay needs matplotlib.*maxmargin\[plot\]"):
        TraceDisplay.from_solution(runs)


def test_matplotlib_is_imported_only_to_draw():
    script = "import sys, maxmargin, maxmargin.inspection; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr
