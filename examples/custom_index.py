"""A new kind of index: the agent names of each object, serving a UDF (the paper's appendix).

python examples/custom_index.py
"""

import tempfile
from dataclasses import dataclass

from pyspark.sql import SparkSession

import skipstone
from skipstone import Dataset, Filter, Index
from skipstone.expressions.tree import Call, Column, EqualTo, Literal
from skipstone.indexes.value_list import ValueListClause, ValueListMetadata


def agent_name(user_agent):
    """The UDF that queries use, and that the index is made of."""
    return user_agent.split("/")[0] if user_agent else None


@dataclass(frozen=True)
class AgentNameIndex(Index):
    """The distinct agent names of each object."""

    column: str
    metadata_type = ValueListMetadata
    functions = ("agent_name",)  # whose results it holds: once that is another function, the index is not used

    def collect_metadata(self, rows):
        return ValueListMetadata.of([agent_name(value) for value in rows.column(0).unique().to_pylist()])

    def filters(self):
        return (AgentNameFilter(self),)


@dataclass(frozen=True)
class AgentNameFilter(Filter):
    """A row with ``agent_name(c) = v`` puts ``v`` into its object's list: no ``v`` in the list, no such row."""

    index: AgentNameIndex

    def label_node(self, node):
        match node:
            case EqualTo(Call("agent_name", (Column(self.index.column),)), Literal(name)):
                return ValueListClause(self.index, (name,))


def main():
    spark = skipstone.configure(SparkSession.builder).getOrCreate()
    spark.udf.register("agent_name", agent_name)
    skipstone.state_version(spark, "agent_name", "1")  # an index of its results knows it by this in every session
    folder = f"{tempfile.mkdtemp()}/requests"
    agents = "element_at(array('Firefox', 'Chrome', 'curl', 'Wget'), int(id div 1000) % 4 + 1)"
    requests = spark.range(0, 16_000, numPartitions=16)  # a thousand rows in each object
    requests.selectExpr("id", f"concat({agents}, '/', id % 100, '.0') AS user_agent").write.parquet(folder)

    dataset = Dataset.for_path(spark, folder)
    print(dataset.create_indexes(AgentNameIndex("user_agent")))
    query = spark.read.parquet(folder).where("agent_name(user_agent) = 'curl'")
    print(query.count(), "rows;", skipstone.last_query(spark)[-1].objects)
    print(dataset.explain(query))


if __name__ == "__main__":
    main()
