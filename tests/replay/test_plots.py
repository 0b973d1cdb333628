"""Plots: what is drawn is what was given, for any names and any number of groups."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from service.domain.errors import RecordingError
from service.replay import plots
from service.replay.plots import drawing, groups
from service.replay.plots.drawing import BLUE, GREY, VERMILLION

Intervals = tuple[np.ndarray, np.ndarray, np.ndarray]

TRICKY = ["a_b", "$x$", "costs_$5", "_hidden", "n" * 60, "two\nlines", "日本", "\\alpha", "%d {}"]


def intervals(count: int, seed: int = 0, width: float = 0.05) -> Intervals:
    mean = np.random.default_rng(seed).uniform(0.2, 0.8, count)
    return mean - width, mean, mean + 2 * width


def numbered(count: int) -> list[str]:
    return [f"class {place}" for place in range(count)]


def scatter(count: int, names: list[str] | None = None, **options: int) -> Figure:
    return plots.accuracy_against_calibration(
        names or numbered(count), intervals(count), intervals(count, 1), **options
    )


def ranks_of(count: int) -> Intervals:
    mean = np.random.default_rng(2).permutation(count).astype(np.float64)
    return np.maximum(mean - 2, 0), mean, np.minimum(mean + 1, count - 1)


def difference(
    points: np.ndarray | None = None, density: np.ndarray | None = None, truth: float | None = None
) -> Figure:
    points = np.linspace(-1, 1, 401) if points is None else points
    density = np.exp(-(((points - 0.1) / 0.05) ** 2)) if density is None else density
    return plots.difference_density(
        points, density, 0.05, np.array([0.0004, 0.12, 0.8796]), ("cat", "dog"), truth=truth
    )


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


def points_of(axes: Axes) -> list[PathCollection]:
    return [found for found in axes.collections if isinstance(found, PathCollection)]


def offsets_of(points: PathCollection) -> np.ndarray:
    return np.asarray(points.get_offsets())


def bars_of(axes: Axes) -> np.ndarray:
    """All thin bars [N, 2, 2], in ascending order."""
    bars = [found.get_segments() for found in axes.collections if isinstance(found, LineCollection)]
    return ordered(np.concatenate(bars))


def ordered(bars: np.ndarray) -> np.ndarray:
    return np.array(sorted(bars.tolist()))


def colour_of(points: PathCollection) -> str:
    return to_hex(points.get_facecolor()[0]).upper()


EVERY: dict[str, Callable[[int, list[str]], Figure]] = {
    "scatter": scatter,
    "ranks": lambda count, names: plots.ranks_and_extremes(names, ranks_of(count), np.full(count, 1 / count)),
    "confusion": lambda count, names: plots.confusion(names, np.full((count, count), 1 / count)),
    "reliability": lambda count, _names: plots.reliability_diagram(
        np.linspace(0.1, 1, count), np.full(count, 1 / count), intervals(count), (0.1, 0.2, 0.3)
    ),
    "precision": lambda count, _names: plots.precision_recall(
        np.linspace(0.1, 1, count), intervals(count), np.full(count, 0.9), mass=0.95
    ),
    "curves": lambda count, names: plots.curves(
        np.arange(1.0, 6), {name: np.linspace(0, 1, 5) for name in names[:20]}, f"MRR of {count}"
    ),
}


@pytest.mark.parametrize("plot", EVERY)
@pytest.mark.parametrize("count", [1, 2, 9, 1_000])
def test_any_number_of_groups_is_drawn_and_saved(plot: str, count: int, tmp_path: Path) -> None:
    figure = EVERY[plot](count, numbered(count))
    plots.save(figure, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("plot", EVERY)
def test_names_of_any_characters_are_drawn(plot: str, tmp_path: Path) -> None:
    plots.save(EVERY[plot](len(TRICKY), TRICKY), tmp_path / "plot.png")


@pytest.mark.parametrize("plot", [plot for plot in EVERY if plot not in {"reliability", "precision"}])
def test_names_are_no_formulae(plot: str) -> None:
    figure = EVERY[plot](3, ["a_b", "$x$", "_hidden"])
    figure.draw_without_rendering()
    named = [text for text in figure.findobj(Text) if text.get_text() in {"a_b", "$x$", "_hidden"}]
    assert {text.get_text() for text in named} == {"a_b", "$x$", "_hidden"}
    assert not any(text.get_parse_math() for text in named)


@pytest.mark.parametrize("plot", EVERY)
def test_the_same_plot_drawn_twice_is_the_same_file(plot: str, tmp_path: Path) -> None:
    for name in ("one.png", "two.png"):
        plots.save(EVERY[plot](12, numbered(12)), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_file_names_no_date_and_no_software(tmp_path: Path) -> None:
    plots.save(scatter(3), tmp_path / "plot.png")
    written = (tmp_path / "plot.png").read_bytes()
    assert not any(word in written for word in (b"tEXt", b"iTXt", b"zTXt", b"tIME"))


def test_drawing_leaves_the_settings_of_matplotlib_alone(tmp_path: Path) -> None:
    before = mpl.rcParams.copy()
    plots.save(scatter(3), tmp_path / "plot.png")
    assert mpl.rcParams.copy() == before


@pytest.mark.parametrize("plot", EVERY)
def test_pyplot_is_not_needed(plot: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    plots.save(EVERY[plot](3, numbered(3)), tmp_path / "plot.png")


def test_matplotlib_is_imported_only_when_something_is_drawn() -> None:
    script = "import sys, service.replay.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_without_matplotlib_it_is_told_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RecordingError, match=r"pip install 'credence\[replay\]'"):
        scatter(3)


def test_a_title_is_wrapped_within_the_figure() -> None:
    figure = plots.confusion(["a"], np.ones((1, 1)), "A sentence that goes on. " * 8)
    figure.draw_without_rendering()
    title = next(text for text in figure.findobj(Text) if text.get_text().startswith("A sentence"))
    assert title.get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (0.0, "0%"),
        (0.0004, "< 0.1%"),
        (0.004, "0.4%"),
        (0.116, "12%"),
        (0.994, "99.4%"),
        (0.9996, "> 99.9%"),
        (1.0, "100%"),
    ],
)
def test_a_probability_is_not_rounded_to_a_certainty(probability: float, words: str) -> None:
    assert drawing.percent(probability) == words


def test_a_long_name_keeps_its_start_and_its_end() -> None:
    assert drawing.short("abcdefghijklmnopqrstuvwxyz", 11) == "abcde…vwxyz"


def test_a_name_that_fits_is_kept() -> None:
    assert drawing.short("abc_$", 5) == "abc_$"


def test_every_group_is_a_point_at_its_means() -> None:
    found = np.concatenate([offsets_of(points) for points in points_of(scatter(50).axes[0])])
    given = np.column_stack([intervals(50)[1], intervals(50, 1)[1]])
    np.testing.assert_array_equal(np.array(sorted(found.tolist())), np.array(sorted(given.tolist())))


def test_both_intervals_of_every_group_are_drawn_as_given() -> None:
    (left, x, right), (low, y, high) = intervals(50), intervals(50, 1)
    flat = np.stack([np.column_stack([left, y]), np.column_stack([right, y])], axis=1)
    upright = np.stack([np.column_stack([x, low]), np.column_stack([x, high])], axis=1)
    np.testing.assert_array_equal(bars_of(scatter(50).axes[0]), ordered(np.concatenate([flat, upright])))


def test_the_least_and_the_most_accurate_are_in_colours_of_their_own() -> None:
    ascending = np.sort(intervals(50)[1])
    found = {
        colour_of(points): np.sort(offsets_of(points)[:, 0]).tolist()
        for points in points_of(scatter(50, highlighted=4).axes[0])
    }
    assert found == {
        VERMILLION: ascending[:4].tolist(),
        BLUE: ascending[-4:].tolist(),
        GREY: ascending[4:-4].tolist(),
    }


def test_no_group_is_both_among_the_least_and_the_most_accurate() -> None:
    sizes = {colour_of(points): len(offsets_of(points)) for points in points_of(scatter(5).axes[0])}
    assert sizes == {VERMILLION: 2, BLUE: 2, GREY: 1}


def test_the_eight_least_accurate_of_many_groups_are_named_the_higher_above() -> None:
    worst = np.argsort(intervals(100)[1])[:8]
    upward = worst[np.argsort(intervals(100, 1)[1][worst])]
    named = scatter(100).axes[0].texts
    assert [text.get_text() for text in named] == [f"class {group}" for group in upward]
    assert (np.diff([text.get_position()[1] for text in named]) > 0).all()


def test_names_of_groups_are_beside_the_axes_and_cover_no_other() -> None:
    figure = scatter(300, [f"{place} {'of a long name' * 3}" for place in range(300)])
    figure.draw_without_rendering()
    frame = figure.axes[0].get_window_extent()
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]
    assert len(boxes) == 8
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= frame.x0 for box in boxes)
    assert not any(box.overlaps(other) for place, box in enumerate(boxes) for other in boxes[:place])


def test_the_line_of_a_name_ends_at_its_group() -> None:
    worst = np.argsort(intervals(300)[1])[:8]
    figure = scatter(300)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    places = dict(zip(numbered(300), np.column_stack([intervals(300)[1], intervals(300, 1)[1]]), strict=True))
    ends = {text.get_text(): text.xy for text in axes.texts if isinstance(text, Annotation)}
    assert ends.keys() == {f"class {group}" for group in worst}
    for name, end in ends.items():
        at = (axes.transAxes - axes.transData).transform(end)
        np.testing.assert_allclose(at, places[name])


def test_groups_at_one_point_are_named_apart() -> None:
    same = (np.full(8, 0.4), np.full(8, 0.5), np.full(8, 0.6))
    figure = plots.accuracy_against_calibration(numbered(8), same, same)
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]
    assert len(boxes) == 8
    assert not any(box.overlaps(other) for place, box in enumerate(boxes) for other in boxes[:place])


def test_a_mean_outside_of_its_interval_is_drawn_as_given() -> None:
    ece = (np.array([0.0]), np.array([0.2]), np.array([0.1]))
    axes = plots.accuracy_against_calibration(["a"], intervals(1), ece).axes[0]
    assert bars_of(axes)[:, :, 1].max() == 0.2
    assert offsets_of(points_of(axes)[0])[0, 1] == 0.2


SCORES, SHARES = np.array([0.25, 0.5, 0.0, 0.95]), np.array([0.1, 0.2, 0.0, 0.7])


def reliability(ece: tuple[float, float, float] = (0.051, 0.062, 0.073)) -> Figure:
    return plots.reliability_diagram(SCORES, SHARES, intervals(4), ece)


def test_bins_with_traffic_are_points_at_their_scores() -> None:
    found = offsets_of(points_of(reliability().axes[0])[0])
    used = SHARES > 0
    np.testing.assert_array_equal(found, np.column_stack([SCORES, intervals(4)[1]])[used])


def test_intervals_of_bins_are_drawn_as_given() -> None:
    low, _, high = (end[SHARES > 0] for end in intervals(4))
    found = bars_of(reliability().axes[0])
    np.testing.assert_array_equal(found[:, 0, 1], low)
    np.testing.assert_array_equal(found[:, 1, 1], high)


def test_the_gap_reaches_from_the_score_to_the_accuracy() -> None:
    bars = reliability().axes[0].patches
    used = SHARES > 0
    np.testing.assert_allclose([bar.get_y() for bar in bars], SCORES[used])
    ends = [bar.get_y() + bar.get_height() for bar in bars]
    np.testing.assert_allclose(ends, intervals(4)[1][used])


def test_traffic_is_drawn_as_given() -> None:
    heights = [bar.get_height() for bar in reliability().axes[1].patches]
    assert heights == [0.1, 0.2, 0.7]


def test_bars_of_traffic_do_not_overlap_however_near_the_scores_are() -> None:
    scores = np.array([0.5, 0.99, 0.992, 0.9999])
    figure = plots.reliability_diagram(scores, np.full(4, 0.25), intervals(4), (0.0, 0.1, 0.2))
    bars = figure.axes[1].patches
    ends = np.array([(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars])
    assert np.all(ends[:-1, 1] <= ends[1:, 0])


def test_unknown_scores_of_bins_without_traffic_do_not_matter(tmp_path: Path) -> None:
    scores = np.where(SHARES > 0, SCORES, np.nan)
    plots.save(reliability(), tmp_path / "one.png")
    figure = plots.reliability_diagram(scores, SHARES, intervals(4), (0.051, 0.062, 0.073))
    plots.save(figure, tmp_path / "two.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_without_any_traffic_a_reliability_diagram_is_empty() -> None:
    figure = plots.reliability_diagram(SCORES, np.zeros(4), intervals(4), (0.0, 0.0, 0.0))
    figure.draw_without_rendering()
    assert not figure.axes[1].patches


def test_the_calibration_error_is_written_with_its_interval() -> None:
    assert "Expected calibration error 6.2%\n95%: 5.1 to 7.3%" in texts(reliability())


LABELS = np.array([10.0, 100.0, 1_000.0])
MRR = {"random": np.array([0.1, 0.4, 0.8]), "Thompson": np.array([0.2, 0.9, 1.0])}


def test_every_method_is_a_line_of_its_values() -> None:
    lines = plots.curves(LABELS, MRR, "MRR").axes[0].lines
    for line, values in zip(lines, MRR.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([LABELS, values]))


def test_every_method_is_named_once_the_higher_above() -> None:
    named = plots.curves(LABELS, MRR, "MRR").axes[0].texts
    places = {text.get_text(): text.get_position()[1] for text in named}
    assert places.keys() == MRR.keys()
    assert places["Thompson"] > places["random"]


def test_names_of_lines_that_end_together_do_not_overlap() -> None:
    series = {f"method {place}": np.array([0.1 * place, 0.5, 1.0]) for place in range(10)}
    figure = plots.curves(LABELS, series, "MRR")
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]
    assert not any(box.overlaps(other) for place, box in enumerate(boxes) for other in boxes[:place])


def test_no_two_of_many_lines_look_alike() -> None:
    series = {f"method {place}": np.arange(3.0) + place for place in range(28)}
    lines = plots.curves(LABELS, series, "RMSE").axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 28


def test_a_value_to_reach_is_drawn_across_and_written() -> None:
    axes = plots.curves(LABELS, MRR, "MRR", reference=0.99).axes[0]
    assert np.asarray(axes.lines[-1].get_ydata()).tolist() == [0.99, 0.99]
    assert "0.99" in [text.get_text() for text in axes.texts]


def test_a_measure_starts_at_zero_and_has_its_unit() -> None:
    figure = plots.curves(LABELS, {"a": np.array([0.3, 0.2, 0.15])}, "RMSE", "%")
    assert figure.axes[0].get_ylim()[0] == 0
    assert figure.axes[0].get_ylabel() == "RMSE (%)"
    assert "25" in texts(figure)


def test_the_three_probabilities_are_written() -> None:
    written = texts(difference())
    assert {"< 0.1%", "12%", "88%"} <= set(written)
    assert {"cat is worse", "alike within 5 points", "cat is better"} <= set(written)


def test_the_region_of_practical_equivalence_is_shaded() -> None:
    (region,) = difference().axes[0].patches
    box = region.get_extents().transformed(difference().axes[0].transData.inverted())
    assert region.get_path() is not None
    np.testing.assert_allclose((box.x0, box.x1), (-0.05, 0.05), atol=1e-9)


def test_the_areas_meet_where_the_region_ends() -> None:
    points = np.linspace(-1, 1, 14)
    areas = difference(points, np.ones(14)).axes[0].collections
    ends = [area.get_datalim(area.axes.transData).intervalx.tolist() for area in areas]
    np.testing.assert_allclose(ends, [[-1, -0.05], [-0.05, 0.05], [0.05, 1]])


def test_a_density_is_shown_where_it_is() -> None:
    left, right = difference().axes[0].get_xlim()
    assert -0.1 < left < -0.05
    assert 0.2 < right < 0.3


def test_an_infinite_density_is_cut_off() -> None:
    points = np.linspace(-1, 1, 21)
    density = np.where(np.abs(points) < 1e-9, np.inf, 0.5)
    figure = difference(points, density)
    figure.draw_without_rendering()
    assert 0.5 < figure.axes[0].get_ylim()[1] < 1


def test_the_truth_is_a_line_within_the_axes() -> None:
    figure = difference(truth=-0.6)
    assert "truth \N{MINUS SIGN}60" in texts(figure)
    assert figure.axes[0].get_xlim()[0] < -0.6


def ranked(count: int) -> Figure:
    return plots.ranks_and_extremes(numbered(count), ranks_of(count), np.full(count, 1 / count))


def test_ranks_are_counted_from_one_and_sorted() -> None:
    low, mean, high = ranks_of(12)
    order = np.argsort(mean)
    axes = ranked(12).axes[0]
    np.testing.assert_array_equal(
        offsets_of(points_of(axes)[0]), np.column_stack([mean[order] + 1, np.arange(12)])
    )
    segments = np.array(next(c for c in axes.collections if isinstance(c, LineCollection)).get_segments())
    np.testing.assert_array_equal(segments[:, :, 0], np.column_stack([low[order], high[order]]) + 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"class {group}" for group in order]


def test_the_least_accurate_is_at_the_top() -> None:
    bottom, top = ranked(12).axes[0].get_ylim()
    assert bottom > top


def test_of_very_many_groups_both_ends_are_shown_and_the_rest_is_counted() -> None:
    figure = ranked(1_000)
    ranks = offsets_of(points_of(figure.axes[0])[0])[:, 0]
    assert ranks.tolist() == [*range(1, 21), *range(981, 1_001)]
    assert "… 960 groups between are left out …" in texts(figure)


def test_as_many_groups_as_have_rows_are_all_shown() -> None:
    figure = ranked(groups.MOST_SHOWN)
    assert len(offsets_of(points_of(figure.axes[0])[0])) == 40
    assert not any("left out" in text for text in texts(figure))


def test_probabilities_are_written_beside_their_bars() -> None:
    figure = plots.ranks_and_extremes(numbered(3), ranks_of(3), np.array([0.6, 0.3996, 0.0004]))
    written = [text.get_text() for text in figure.axes[1].texts if isinstance(text, Annotation)]
    assert sorted(written) == ["40%", "60%"]


def test_side_by_side_a_row_is_one_group() -> None:
    ranks, probability = ranks_of(60), np.linspace(0, 1, 60)
    left, right = plots.ranks_and_extremes(numbered(60), ranks, probability).axes
    shown = np.argsort(ranks[1])[[*range(20), *range(40, 60)]]
    assert left.get_ylim() == right.get_ylim()
    assert [bar.get_width() for bar in right.patches] == probability[shown].tolist()
    middles = [bar.get_y() + bar.get_height() / 2 for bar in right.patches]
    np.testing.assert_allclose(middles, offsets_of(points_of(left)[0])[:, 1])


CONFUSED = np.array([[0.9, 0.08, 0.02], [0.3, 0.7, 0.0], [0.0, 0.004, 0.996]])


def test_confusions_are_drawn_as_given_and_the_diagonal_is_not() -> None:
    cells = plots.confusion(["a", "b", "c"], CONFUSED).axes[0].images[0].get_array()
    assert cells is not None
    assert np.ma.getmaskarray(cells).diagonal().all()
    assert (cells[0, 1], cells[1, 0], cells[2, 1]) == (0.08, 0.3, 0.004)


def test_the_scale_of_colours_ends_at_the_worst_confusion() -> None:
    image = plots.confusion(["a", "b", "c"], CONFUSED).axes[0].images[0]
    assert image.get_clim() == (pytest.approx(0.0003), 0.3)


def test_probabilities_of_few_classes_are_written_in_the_cells() -> None:
    written = [text.get_text() for text in plots.confusion(["a", "b", "c"], CONFUSED).axes[0].texts]
    assert written == ["90.0", "8.0", "2.0", "30.0", "70.0", "0.0", "0.0", "0.4", "99.6"]


def test_the_true_classes_run_along_and_the_predicted_down() -> None:
    axes = plots.confusion(["a", "b", "c"], CONFUSED).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("True class", "Predicted class")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]


def test_a_classifier_without_confusions_is_all_of_the_lightest_colour() -> None:
    image = plots.confusion(["a", "b"], np.eye(2)).axes[0].images[0]
    assert np.ma.masked_invalid(image.get_array()).max() == image.get_clim()[0]


def test_of_a_thousand_classes_no_confusion_is_lost_and_none_is_named() -> None:
    mean = np.zeros((1_000, 1_000))
    mean[998, 3] = 0.4
    axes = plots.confusion(numbered(1_000), mean).axes[0]
    cells = axes.images[0].get_array()
    assert cells is not None
    assert np.argwhere(cells == 0.4).tolist() == [[998 // 3, 1]]
    assert not axes.get_xticklabels()
    assert axes.get_ylabel() == "Predicted class (all 1,000)"
