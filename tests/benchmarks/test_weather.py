"""The weather dataset is what its description says: shape, KD-tree, columns, correlation, the same each time."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.conditions import Conditions, Place
from benchmarks.datasets import weather
from benchmarks.experiments import fig9_geo_udf, fig10_centralised, weather_runs
from benchmarks.experiments.record import SCALES


@pytest.mark.parametrize(
    ("objects", "leaves", "months"), [(5, 1, 5), (80, 16, 5), (512, 64, 8), (8_192, 1_024, 8), (98_304, 8_192, 12)]
)
def test_one_number_gives_leaves_and_months(objects, leaves, months):
    shape = weather.shape(objects)
    assert (shape.leaves, shape.months) == (leaves, months)
    rows, columns = shape.grid
    assert rows * columns == leaves * weather.POINTS


def test_too_few_objects_are_refused():
    with pytest.raises(ValueError, match="at least 5"):
        weather.shape(4)


def test_the_tree_splits_all_points_into_equal_leaves_that_do_not_overlap():
    rng = np.random.default_rng(1)
    lat, lng = rng.random(512), 2 * rng.random(512)
    leaves = weather.kd_tree(lat, lng, 64)
    assert leaves.shape == (64, 8)
    assert sorted(leaves.ravel()) == list(range(512))
    low = np.stack([lat[leaves].min(axis=1), lng[leaves].min(axis=1)], axis=1)
    high = np.stack([lat[leaves].max(axis=1), lng[leaves].max(axis=1)], axis=1)
    overlaps = (low[:, None] < high[None]).all(axis=2) & (low[None] < high[:, None]).all(axis=2)
    assert overlaps.sum() == 64, "a leaf overlaps itself only"


@pytest.mark.parametrize("objects", [80, 512, 8_192, 98_304])
def test_the_triangle_holds_a_point_and_few_leaves(objects):
    shape = weather.shape(objects)
    area = weather.research_triangle(shape)
    lat, lng = weather._grid(shape)
    inside = (lat >= area.south) & (lat <= area.north) & (lng >= area.west) & (lng <= area.east)
    assert 1 <= inside.sum() <= 8
    needed = weather.leaves_in(shape, area)
    holding = {leaf for leaf in range(shape.leaves) if inside[weather._leaves(shape)[leaf]].any()}
    assert holding <= set(needed)
    assert len(needed) <= 4


def test_an_object_has_33_columns_of_correlated_measures_and_is_the_same_each_time(tmp_path):
    shape = weather.shape(80)
    for name in ("one", "two"):
        weather.write(shape, 16 + 3, tmp_path / name)  # the second month
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    table = pq.read_table(tmp_path / "one")
    assert table.num_columns == 33
    assert table.num_rows == 29 * 24 * weather.POINTS
    hours = table["ts"].to_numpy()
    assert (hours[0], hours[-1]) == (np.datetime64("2024-02-01T00"), np.datetime64("2024-02-29T23"))
    columns = {name: table[name].to_numpy() for name in ("temp", "solar_radiation", "cloud_cover", "pressure")}
    assert np.corrcoef(columns["temp"], columns["solar_radiation"])[0, 1] > 0.3
    assert np.corrcoef(columns["cloud_cover"], columns["pressure"])[0, 1] < -0.3
    assert all(np.isfinite(values).all() for values in columns.values())
    assert len({(lat, lng) for lat, lng in zip(table["lat"].to_pylist(), table["lng"].to_pylist(), strict=True)}) == 4


@pytest.mark.parametrize(("scale", "judged"), [("small", []), ("medium", [8]), ("full", [1, 5, 12])])
@pytest.mark.parametrize("storage", ["local", "s3"])
def test_windows_of_the_papers_size_are_judged_wherever_the_data_lies(scale, storage, judged, monkeypatch):
    shape = weather.shape(SCALES[scale].weather)
    asked = weather_runs.Weather(None, Place("", {}, None, "", ""), None, shape, "condition")
    assert asked.windows == tuple(sorted({1, 5, shape.months}))

    @contextmanager
    def prepared(*_):
        yield asked

    for module in (fig9_geo_udf, fig10_centralised):
        monkeypatch.setattr(module, "prepared", prepared)
        monkeypatch.setattr(module, "compared", rows_of)
        findings = module.run(SCALES[scale], Conditions(storage)).findings
        targets = [finding.target for finding in findings if finding.target is not None]
        wanted = {fig9_geo_udf: {"local": [120], "s3": [240]}, fig10_centralised: {"local": [], "s3": [10, 2]}}
        assert targets == wanted[module][storage] * len(judged)
        said = [f.what for f in findings if f.target is not None]
        assert all(any(what.startswith(f"{months} month") for months in judged) for what in said)


def rows_of(asked, by_user, other, label, *, repeats):
    """Rows as they are measured, of made-up figures."""
    ways = ("skipping", label)
    return [
        {
            "months": months,
            "objects": months * asked.shape.leaves,
            "kept": months,
            "seconds": {way: {"median": 1.0} for way in ways},
            "rounds": {way: [1.0] * repeats for way in ways},
            "bytes": dict.fromkeys(ways, 1_000),
            "requests": dict.fromkeys(ways, 0),
        }
        for months in asked.windows
    ]
