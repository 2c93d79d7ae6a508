#!/bin/sh
# Expected: MLflow stores a metric that is infinite as infinite, as it stores NaN as NaN.
# Happens: its database, the default store of version 3, turns infinity into 1.797e308, the largest number. NaN comes back as NaN.
# Versions: mlflow 3.17.2.
# Matters: an NLL is infinite where a true class has probability 0. Read back it is finite: isfinite finds nothing, and means of runs are
#   numbers near 1e307 or overflow.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages mlflow==3.17.2
check <<'END'
from seen import seen, versions
import os; os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
import logging, math, mlflow

logging.disable(logging.CRITICAL)
versions("mlflow")
mlflow.set_tracking_uri("sqlite:///runs.db")
mlflow.set_experiment("nll")
with mlflow.start_run() as run:
    for name, value in (("infinite", math.inf), ("negative", -math.inf), ("nan", math.nan), ("small", 5e-324)):
        mlflow.log_metric(name, value)
metrics = mlflow.get_run(run.info.run_id).data.metrics
seen("infinity", metrics["infinite"], lambda m: m == 1.7976931348623157e308)
seen("minus infinity", metrics["negative"], lambda m: m == -1.7976931348623157e308)
seen("NaN", metrics["nan"], math.isnan)
seen("5e-324", metrics["small"], lambda m: m == 5e-324)
END
