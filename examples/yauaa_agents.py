"""Skipping through a Java function: agent names by Yauaa, the parser of the paper, indexed by a FormattedIndex.

Spark fetches Yauaa by its coordinates; the class that makes it a function of SQL is compiled by the Scala compiler that
comes with pyspark.

python examples/yauaa_agents.py
"""

import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import skipstone
from skipstone import Dataset, FormattedIndex

YAUAA = "nl.basjes.parse.useragent:yauaa:8.1.1"
CLASS = "examples.YauaaAgentName"
SOURCE = """
package examples

import nl.basjes.parse.useragent.UserAgentAnalyzer
import org.apache.spark.sql.api.java.UDF1

object Yauaa {
  lazy val analyzer =
    UserAgentAnalyzer.newBuilder().hideMatcherLoadStats().withCache(10000).withField("AgentName").build()
}

class YauaaAgentName extends UDF1[String, String] {
  override def call(agent: String): String =
    if (agent == null) null else Yauaa.analyzer.parse(agent).getValue("AgentName")
}
"""
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "curl/8.5.0",
    "' OR 1=1; DROP TABLE users; --",
]


def compiled(folder, jars):
    """Compile the class and put it into a jar."""
    classes, source, jar = folder / "classes", folder / "YauaaAgentName.scala", folder / "yauaa-agent-name.jar"
    classes.mkdir()
    source.write_text(SOURCE)
    class_path = ":".join([str(Path(pyspark.__file__).parent / "jars" / "*"), *jars])
    command = ["java", "-cp", class_path, "scala.tools.nsc.Main"]
    command += ["-usejavacp", "-nowarn", "-d", str(classes), str(source)]
    with (folder / "log").open("w") as log:
        subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=True)
    with zipfile.ZipFile(jar, "w") as archive:
        for file in sorted(classes.rglob("*.class")):
            archive.write(file, file.relative_to(classes))
    return jar


def register(spark, folder):
    """Register Yauaa as getAgentName."""
    brought = [jar.removeprefix("file://").removeprefix("file:") for jar in spark.conf.get("spark.jars").split(",")]
    jar = compiled(folder, brought)
    spark._jsc.addJar(str(jar))  # for the executors; the driver has a class loader of its own
    location = spark._jvm.java.io.File(str(jar)).toURI().toURL()
    spark._jvm.Thread.currentThread().getContextClassLoader().addURL(location)
    spark.udf.registerJavaFunction("getAgentName", CLASS, "string")
    # What the names depend on: an index made with it serves every session that states the same.
    skipstone.state_version(spark, "getAgentName", YAUAA)


def main():
    spark = skipstone.configure(SparkSession.builder.config("spark.jars.packages", YAUAA)).getOrCreate()
    with tempfile.TemporaryDirectory() as scratch:
        register(spark, Path(scratch))
        folder = f"{scratch}/requests"
        rows = [(number, AGENTS[number // 100 % len(AGENTS)]) for number in range(1600)]
        spark.createDataFrame(rows, "id int, user_agent string").repartitionByRange(16, "id").write.parquet(folder)

        requests = Dataset.for_path(spark, folder)
        print(requests.create_indexes(FormattedIndex("user_agent", extract="getAgentName")))
        query = spark.read.parquet(folder).where("getAgentName(user_agent) = 'Hacker'")
        print(query.count(), "rows;", skipstone.last_query(spark)[-1].objects)
        print(requests.explain(query))


if __name__ == "__main__":
    main()
