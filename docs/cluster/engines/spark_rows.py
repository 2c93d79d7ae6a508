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


def scored(frames):
    for frame in frames:
        yield rows.of(frame, model)


# The first row tells the columns. A column without a value is text: Spark writes no column without a type.
first = pa.Table.from_pandas(rows.of(data.limit(1).toPandas(), model), preserve_index=False)
schema = pa.schema([f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in first.schema])
data.mapInPandas(scored, spark.createDataFrame(first.cast(schema)).schema).write.parquet(args.output)
