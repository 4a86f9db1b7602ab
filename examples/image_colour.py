"""Skipping over images: a binary column of PNG files, an index of their mean colours, and a UDF that it serves.

python examples/image_colour.py
"""

import random
import struct
import tempfile
import zlib
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

import skipstone
from skipstone import Clause, Dataset, Filter, Index, MetadataType
from skipstone.expressions.tree import Call, Column, GreaterThan, Literal

CHANNELS = ("red", "green", "blue")
TOLERANCE = 40
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def write_png(rows):
    """Write rows of (red, green, blue) pixels as a PNG file."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)  # 8 bits a channel, RGB, not interlaced
    lines = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in rows)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def read_png(image):
    """Return the lines of a PNG file as bytes; None for what is no 8-bit RGB image."""
    if image is None or not image.startswith(SIGNATURE):
        return None
    place, data, header = len(SIGNATURE), b"", None
    while place + 8 <= len(image):
        length, name = struct.unpack(">I4s", image[place : place + 8])
        content = image[place + 8 : place + 8 + length]
        header = struct.unpack(">IIBBBBB", content) if name == b"IHDR" else header
        data += content if name == b"IDAT" else b""
        place += length + 12
    if header is None or header[2:] != (8, 2, 0, 0, 0):
        return None
    width, height = header[:2]
    return unfiltered(zlib.decompress(data), width * 3, height)


def unfiltered(data, width, height):
    """Undo the filters of the PNG format: each line may be written as its difference from its neighbours."""
    lines, above = [], bytes(width)
    for start in range(0, height * (width + 1), width + 1):
        kind, line = data[start], bytearray(data[start + 1 : start + 1 + width])
        for i in range(width):
            left, corner = (line[i - 3], above[i - 3]) if i >= 3 else (0, 0)
            nearest = min((left, above[i], corner), key=lambda v, e=left + above[i] - corner: abs(e - v))
            line[i] = (line[i] + (0, left, above[i], (left + above[i]) // 2, nearest)[kind]) % 256
        lines.append(bytes(line))
        above = lines[-1]
    return lines


def mean_colour(image):
    """Return the mean (red, green, blue) of an image in whole numbers, or None."""
    lines = read_png(image)
    if not lines or not lines[0]:
        return None
    count = len(lines) * len(lines[0]) // 3
    return tuple(sum(sum(line[channel::3]) for line in lines) // count for channel in range(3))


def mean_red(image):
    """The UDF: how red an image is on average, from 0 to 255."""
    mean = mean_colour(image)
    return mean and mean[0]


def looks_like(image, colour):
    """The UDF: whether an image's mean colour is near one that is written like ``ff8800``."""
    mean = mean_colour(image)
    if mean is None or colour is None:
        return None
    return all(abs(m - c) <= TOLERANCE for m, c in zip(mean, bytes.fromhex(colour), strict=True))


@dataclass(frozen=True)
class ColourBox(MetadataType):
    """The least and the greatest mean of each channel; None while no image was seen."""

    lower: tuple | None
    upper: tuple | None

    @classmethod
    def fields(cls, inputs):
        return {f"{end}_{channel}": pa.int16() for end in ("lower", "upper") for channel in CHANNELS}

    def merge(self, other):
        if self.lower is None or other.lower is None:
            return other if self.lower is None else self
        return ColourBox(tuple(map(min, self.lower, other.lower)), tuple(map(max, self.upper, other.upper)))

    def finish(self, data_object):
        ends = (*(self.lower or (None,) * 3), *(self.upper or (None,) * 3))
        return dict(zip(self.fields(()), ends, strict=True))


@dataclass(frozen=True)
class MeanColourIndex(Index):
    """The box around the mean colours of each object's images, six small numbers."""

    column: str
    metadata_type = ColourBox

    @property
    def functions(self):
        """It holds what these UDFs see: when one is registered anew, the index is no longer used for it."""
        return ("mean_red", "looks_like")

    def supports(self, types):
        return types == ("binary",)

    def collect_metadata(self, rows):
        means = [mean for image in rows.column(0) if (mean := mean_colour(image.as_py())) is not None]
        channels = list(zip(*means, strict=True))
        return ColourBox(tuple(map(min, channels)) or None, tuple(map(max, channels)) or None)

    def filters(self):
        return (MeanColourFilter(self),)


@dataclass(frozen=True)
class ColourClause(Clause):
    """The object's box of colours and the box that is asked for have a colour in common."""

    index: MeanColourIndex
    lower: tuple
    upper: tuple

    def might_match(self, metadata):
        common = []
        for channel, low, high in zip(CHANNELS, self.lower, self.upper, strict=True):
            common.append(pc.less_equal(metadata.field(self.index, f"lower_{channel}"), high))
            common.append(pc.greater_equal(metadata.field(self.index, f"upper_{channel}"), low))
        return reduce(pc.and_kleene, common)

    @property
    def requires(self):
        return tuple((self.index, name) for name in ColourBox.fields(()))


@dataclass(frozen=True)
class MeanColourFilter(Filter):
    """A row that satisfies the predicate has a mean colour, which lies in its object's box and in the one asked for.

    ``looks_like(image, c)`` is TRUE only if each channel is within the tolerance of ``c``, ``mean_red(image) > v`` only
    if red is at least ``v``; for an image without a mean colour both are NULL.  An object without any mean colour has
    no box: nothing is known of it, and it is read.
    """

    index: MeanColourIndex

    def label_node(self, node):
        match node:
            case Call("looks_like", (Column(self.index.column), Literal(str(colour)))):
                wanted = bytes.fromhex(colour)
                return ColourClause(
                    self.index, tuple(c - TOLERANCE for c in wanted), tuple(c + TOLERANCE for c in wanted)
                )
            case GreaterThan(Call("mean_red", (Column(self.index.column),)), Literal(int(red))):
                return ColourClause(self.index, (red, 0, 0), (255, 255, 255))


def picture(colour, chance):
    """Make a small noisy image around a colour."""
    return write_png([[[min(255, max(0, c + chance.randint(-20, 20))) for c in colour] for _ in range(6)]] * 4)


def main():
    spark = skipstone.configure(SparkSession.builder).getOrCreate()
    spark.udf.register("mean_red", mean_red, "int")
    spark.udf.register("looks_like", looks_like, "boolean")
    folder = f"{tempfile.mkdtemp()}/images"
    chance = random.Random(1)
    palette = [(220, 40, 40), (40, 200, 60), (40, 60, 220), (230, 200, 50)]  # an album has images of one colour
    images = [(n, bytearray(picture(palette[n // 20 % 4], chance))) for n in range(320)]
    albums = spark.createDataFrame(images, "id int, image binary").repartitionByRange(16, "id")
    albums.write.parquet(folder)

    dataset = Dataset.for_path(spark, folder)
    print(dataset.create_indexes(MeanColourIndex("image")))
    for predicate in ("looks_like(image, 'dd2828')", "mean_red(image) > 150"):
        query = spark.read.parquet(folder).where(predicate)
        print(predicate, "selects", query.count(), "images;", skipstone.last_query(spark)[-1].objects)
    print(dataset.explain(query))
    return folder


if __name__ == "__main__":
    main()
