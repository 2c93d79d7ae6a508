#!/bin/sh
# Expected: after early stopping, predictions come from the iteration that was best on validation data, as in LightGBM and XGBoost.
# Happens: pred_dist, predict and score use all iterations, those of the patience too: 50 more. The best one is in best_val_loss_itr, and
#   stands nowhere else: max_iter=best_val_loss_itr gives it.
# Versions: ngboost 0.6.0, scikit-learn 1.6.1.
# Matters: the negative log-likelihood is 4.5 instead of .4 here. What overfits first is the standard deviation, which NGBoost is used for.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
packages numpy==2.4.6 ngboost==0.6.0 scikit-learn==1.6.1
check <<'END'
from seen import near, seen, versions
import numpy as np
from ngboost import NGBRegressor

versions("ngboost", "scikit-learn")
rng = np.random.default_rng(0)
X = rng.standard_normal((450, 3))
Y = X[:, 0] + .3 * rng.standard_normal(450)
model = NGBRegressor(n_estimators=300, learning_rate=.1, verbose=False, random_state=0)
model.fit(X[:150], Y[:150], X_val=X[150:300], Y_val=Y[150:300], early_stopping_rounds=50)
best = model.best_val_loss_itr
seen("best iteration, iterations kept", [best, len(model.base_models)], lambda v: 5 < v[0] < 60 and v[1] > v[0] + 49)
loss = lambda **options: round(float(-model.pred_dist(X[300:], **options).logpdf(Y[300:]).mean()), 3)
seen("loss of the best iteration on test data", loss(max_iter=best), lambda v: v < .6)
seen("loss of pred_dist", loss(), lambda v: v > loss(max_iter=best) + .3)
seen("it is that of all iterations", loss() == loss(max_iter=len(model.base_models)), True)
seen("standard deviation of the noise is .3: of pred_dist", round(float(np.median(model.pred_dist(X[300:]).scale)), 3), lambda v: v < .2)
END
