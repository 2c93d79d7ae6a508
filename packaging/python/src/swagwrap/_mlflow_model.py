"""What MLflow runs when it opens a model: code, and no pickle."""

import mlflow

from swagwrap.mlflow import Ensemble

mlflow.models.set_model(Ensemble())
