"""Names of user agents as a function of a query, registered by one call: ``skipstone.agents.register(spark)``."""

from skipstone.engines.spark.register_agents import register

__all__ = ["register"]
