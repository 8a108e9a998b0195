# -- traces ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    gram = Gram(X, "rbf", gamma=0.5, dtype="float64", n_jobs=1)
    problem = dual.one_class_l2(80, ridge=0.1)

    def in_slices(solver):
        advance = solver.advance

        def short(state):
            state.left = min(state.left, 5)
            advance(state)

        solver.advance = short
        return solver.solve(problem, gram, stop=Stop(1e-2))

    return {"maxminover": in_slices(MaxMinOver()), "mdm": in_slices(MDM())}


@pytest.mark.parametrize(
    ("x", "attribute", "label"),
    [
        ("iterations", "n_iter", "iterations"),
        ("seconds", "seconds", "seconds"),
        ("kernel_calls", "n_kernel_calls", "kernel values used"),
    ],
)
def test_lines_are_the_records(runs, x, attribute, label):
    display = TraceDisplay.from_solution(runs, x=x)
    assert [line.get_label() for line in display.lines_] == list(runs)
    for line, run in zip(display.lines_, runs.values(), strict=True):
        records = [r for r in run.trace if getattr(r, attribute) > 0 and r.violation > 0]
        assert len(records) > 3
        np.testing.assert_array_equal(line.get_xdata(), [getattr(r, attribute) for r in records])
        np.testing.assert_array_equal(line.get_ydata(), [r.violation for r in records])
    ax = display.ax_
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", label)
    assert ax.get_ylabel() == "KKT violation"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(runs)
    assert len({line.get_linestyle() for line in display.lines_}) == 2
    assert display.bound_ is None and display.figure_ is ax.figure


def test_the_objective_is_drawn_above_the_lowest(runs):
    display = TraceDisplay.from_solution(runs, y="objective")
    lowest = min(run.objective for run in runs.values())
    for line, run in zip(display.lines_, runs.values(), strict=True):
        expected = [r.objective - lowest for r in run.trace if r.n_iter > 0 and r.objective > lowest]
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_gap_bounds_the_distance_to_the_minimum(runs):
    display = TraceDisplay.from_solution(runs["maxminover"], y="gap")
    run = runs["maxminover"]
    best = min(r.objective - r.gap for r in runs.values())
    (line,) = display.lines_
    records = [r for r in run.trace if r.n_iter > 0]
    np.testing.assert_allclose(line.get_ydata(), [r.objective - run.objective + run.gap for r in records])
    assert best <= min(r.objective for r in records)
    assert line.get_ydata()[-1] == pytest.approx(run.gap)
    assert display.ax_.get_legend() is None


def test_the_bound_touches_the_curves_from_above(runs):
    display = TraceDisplay.from_solution(runs["maxminover"], bound=True)
    (line,) = display.lines_
    t, values = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    ratio = values * np.sqrt(t) / display.constant
    assert ratio.max() == pytest.approx(1.0)
    np.testing.assert_allclose(
        display.bound_.get_ydata() * np.sqrt(display.bound_.get_xdata()), display.constant
    )
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [r"$c/\sqrt{t}$"]


def test_given_axes_and_options_are_used(runs):
    _, ax = plt.subplots()
    display = TraceDisplay.from_solution(runs, ax=ax, color="black", lw=3)
    assert display.ax_ is ax
    assert {(line.get_color(), line.get_linewidth()) for line in display.lines_} == {("black", 3)}


def test_a_run_without_any_step_is_an_empty_line():
    gram = Gram([[1.0], [2.0]], kernel="linear", dtype="float64")
    run = MaxMinOver().solve(dual.one_class_l2(2, ridge=1.0), gram, stop=Stop(max_iter=0))
    display = TraceDisplay.from_solution(run, bound=True)
    assert len(display.lines_[0].get_xdata()) == 0 and display.bound_ is None


def test_wrong_arguments_are_refused(runs):
    with pytest.raises(ValueError, match="x must be one of iterations, seconds, kernel_calls, got 'steps'"):
        TraceDisplay.from_solution(runs, x="steps")
    with pytest.raises(ValueError, match="y must be one of violation, objective, gap, got 'loss'"):
        TraceDisplay.from_solution(runs, y="loss")
    with pytest.raises(ValueError, match="needs x='iterations'"):
        TraceDisplay.from_solution(runs, x="seconds", bound=True)
    with pytest.raises(ValueError, match="no solution"):
        TraceDisplay.from_solution({})
    with pytest.raises(TypeError, match="A Solution is needed, got 3 for 'a'"):
        TraceDisplay.from_solution({"a": 3})


