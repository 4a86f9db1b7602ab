"""Images skipped by their colour: the example runs, and its index is not used for a function registered anew."""

from __future__ import annotations

import runpy
import struct
import zlib
from pathlib import Path

import pytest

import skipstone

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "image_colour.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(EXAMPLE), run_name="image_colour_example")


def rows_of(spark, folder, predicate):
    return sorted(row.id for row in spark.read.parquet(folder).where(predicate).select("id").collect())


def test_images_are_skipped_by_their_colour(spark, example, capsys):
    folder = example["main"]()
    told = capsys.readouterr().out
    assert "looks_like(image, 'dd2828') selects 80 images" in told
    assert "mean_red(image) > 150 selects 160 images" in told
    assert told.count("skipped=12") == 1
    assert told.count("skipped=8") == 1

    everything = [(n, (220, 40, 40)) for n in range(320) if n // 20 % 4 == 0]
    assert rows_of(spark, folder, "looks_like(image, 'dd2828')") == [n for n, _ in everything]

    spark.udf.register("looks_like", lambda image, colour: image is not None, "boolean")
    with skipstone.skipping_stats(spark) as stats:
        assert len(rows_of(spark, folder, "looks_like(image, 'dd2828')")) == 320
    assert stats[-1].objects.skipped == 0
    assert any("looks_like is not known to be the function" in said for said in stats[-1].not_used)


def filtered(lines, kind):
    """Write lines by one of the PNG format's filters, the other way round than the example reads them."""
    made, above = b"", bytes(len(lines[0]))
    for line in lines:
        made += bytes([kind])
        for i, value in enumerate(line):
            left, corner = (line[i - 3], above[i - 3]) if i >= 3 else (0, 0)
            up, guess = above[i], left + above[i] - corner
            nearest = min((left, up, corner), key=lambda v: abs(guess - v))
            made += bytes([(value - (0, left, up, (left + up) // 2, nearest)[kind]) % 256])
        above = line
    return made


@pytest.mark.parametrize("kind", range(5))
def test_every_filter_of_the_format_is_read(example, kind):
    lines = [bytes((x * 37 + y * 91 + x * y) % 256 for x in range(12)) for y in range(5)]
    assert example["unfiltered"](filtered(lines, kind), 12, 5) == lines


def test_images_are_written_and_read(example):
    rows = [[(1, 2, 3), (250, 251, 252)], [(0, 0, 0), (9, 9, 9)]]
    image = example["write_png"](rows)
    assert example["read_png"](image) == [bytes(v for pixel in row for v in pixel) for row in rows]
    assert example["mean_colour"](image) == (65, 65, 66)


@pytest.mark.parametrize("image", [None, b"", b"GIF89a", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_image_has_no_colour(example, image):
    assert example["mean_colour"](image) is None
    assert example["looks_like"](image, "000000") is None
    assert example["mean_red"](image) is None


def test_an_image_with_a_palette_has_no_colour(example):
    image = bytearray(example["write_png"]([[(1, 2, 3)]]))
    image[8 + 8 + 9] = 3
    image[29:33] = struct.pack(">I", zlib.crc32(image[12:29]))
    assert example["mean_colour"](bytes(image)) is None
