"""Names of user agents as a function of a query, by ua-parser: the paper's ``getAgentName``, registered by one call."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.functions import state_version
from skipstone.errors import PluginError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NAME", "VERSION", "register"]

NAME = "getAgentName"
VERSION = "1"
"""Changes when the function's results do for another reason than ua-parser's own."""

# The parser, the expressions that it matches, and what matches them: each may change a name.
_DECISIVE = ("ua-parser", "ua-parser-builtins", "ua-parser-rs", "google-re2")


def register(spark: SparkSession) -> None:
    """Register ``getAgentName(user_agent)``: the family of the browser, library or robot that a user agent names.

    It gives NULL for NULL, and ``Other`` for a text that ua-parser does not know.  Its version is stated, so that a
    ``FormattedIndex`` over it serves every session that has the same ua-parser.

    Parameters
    ----------
    spark
        The session.

    Raises
    ------
    PluginError
        When ua-parser is not installed.

    Examples
    --------
    >>> skipstone.agents.register(spark)  # doctest: +SKIP
    >>> dataset.create_indexes(FormattedIndex("user_agent", extract="getAgentName"))  # doctest: +SKIP
    >>> spark.read.parquet(folder).where("getAgentName(user_agent) = 'curl'")  # doctest: +SKIP
    """
    if find_spec("ua_parser") is None:
        msg = "names of user agents need ua-parser: pip install 'skipstone[agents]', on the executors as well"
        raise PluginError(msg)
    registering: Any = spark.udf.register
    registering(NAME, _agent_name_function())
    state_version(spark, NAME, " ".join([VERSION, *_versions()]))


def _versions() -> list[str]:
    """Name the installed versions of what decides on a name."""
    found = []
    for name in _DECISIVE:
        try:
            found.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            continue
    return found


def _agent_name_function() -> Any:
    """Make the function; defined in here, it travels by value, and executors need ua-parser only."""
    import pandas as pd
    from pyspark.sql import functions

    def agent_names(user_agents: Any) -> Any:
        import pandas as pd
        from ua_parser import parse_user_agent

        places, distinct = pd.factorize(user_agents)
        parsed = map(parse_user_agent, distinct)
        names = [*("Other" if agent is None else agent.family for agent in parsed), None]  # NULL is at place -1
        return pd.Series([names[place] for place in places], dtype=object)

    agent_names.__annotations__ = {"user_agents": pd.Series, "return": pd.Series}
    spark_functions: Any = functions  # its stubs leave pandas_udf out
    return spark_functions.pandas_udf(agent_names, "string")
