"""What the plots of all experiments share: size, fonts, colours, and SVG that does not change from run to run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart by readers who do not see all colours.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#666666"
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "skipstone",
}


def panels(count: int = 1, *, width: float = 5.2, height: float = 3.8) -> tuple[Figure, list[Axes]]:
    """Make a figure of panels side by side, drawn without a display."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({**STYLE, "axes.prop_cycle": mpl.cycler(color=COLOURS)})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
    return figure, list(axes[0])


def bars(axis: Axes, groups: list[str], series: dict[str, list[float]], *, log: bool = False) -> None:
    """Draw a group of bars for each name, one bar a series."""
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        axis.bar(places, values, width, label=label)
    axis.set_xticks(range(len(groups)), groups)
    axis.grid(visible=False, axis="x")
    if log:
        axis.set_yscale("log")


def legend_below(axis: Axes, columns: int = 2) -> None:
    """Explain the colours below a panel, where nothing is hidden."""
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=columns, fontsize=9)


def save(figure: Figure, file: Path) -> None:
    """Write an SVG without a date, so that equal records give equal files."""
    from matplotlib import pyplot as plt

    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
