"""Scores pictures or a table on Spark.

    spark-submit --py-files rows.py spark_rows.py ENSEMBLE.safetensors PICTURES OUTPUT
    spark-submit --py-files rows.py spark_rows.py ENSEMBLE.onnx TABLE.parquet OUTPUT

PICTURES is a folder, and OUTPUT becomes a folder of Parquet files. All machines have swagwrap and see the model at the same path.
A lost task is tried again as Spark is told to; local[N] never does, local[N,4] does.
"""

import argparse
import os

import pyarrow as pa
from pyspark.sql import SparkSession

import rows

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("model")
parser.add_argument("data")
parser.add_argument("output")
parser.add_argument("--batch", type=int, default=1000, help="rows of one call; for pictures each call opens the networks")
args = parser.parse_args()
model = os.path.abspath(args.model)

# Spark counts 4 MB more for each file, and tasks would be of 32 pictures.
spark = (SparkSession.builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", args.batch)
         .config("spark.sql.files.openCostInBytes", 0).getOrCreate())
if model.endswith(".onnx"):
    data = spark.read.parquet(args.data)
else:
    data = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(args.data).selectExpr("path", "content AS bytes")


def scored(batches):
    for batch in batches:
        yield from rows.of(pa.Table.from_batches([batch]), model).to_batches()


# mapInPandas would make numbers with decimals of integers with gaps. The first row tells the types.
schema = spark.createDataFrame(rows.of(data.limit(1).toArrow(), model)).schema
data.mapInArrow(scored, schema).write.parquet(args.output)
