"""How deep conditions come: the bridge's own number."""

import re
from pathlib import Path

from skipstone.engines.spark import bridge

DEEPEST = int(re.search(r"val MaxDepth = (\d+)", Path(bridge.__path__[0], "ExpressionJson.scala").read_text())[1])
