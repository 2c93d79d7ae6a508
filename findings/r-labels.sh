#!/bin/sh
# Expected: a metric of R takes a factor of two levels as labels, the usual type there, or refuses it.
# Happens: ModelMetrics turns it into 1 and 2 and puts these into the formula. Good scores have the log loss −.93 instead of .16, and the
#   Brier score 1.12 instead of .03; auc of the same factor is right, but of the numbers 1 and 2 it is 0 instead of 1. mlogLoss counts
#   classes from 1; labels from 0 give a number. ROCR does so for rmse, and refuses for mxe.
# Versions: r-cran-modelmetrics 1.2.2.2 and r-cran-rocr 1.0 of Debian 12.
# Matters: lower is better, so a negative loss wins a comparison. Exported scores meet labels of Python (from 0) and of R (from 1) here.
# Source: seen by running. The page of logLoss says "binary vector"; the function has a method for factors.
. "$(dirname "$0")/lib.sh"
debian r-cran-modelmetrics 1.2.2.2
debian r-cran-rocr 1.0
cat >finding.R <<'END'
library(ModelMetrics, warn.conflicts = FALSE)
cat("ModelMetrics", as.character(packageVersion("ModelMetrics")), "ROCR", as.character(packageVersion("ROCR")), "\n")
changed <- FALSE
seen <- function(what, got, want) {
  ok <- isTRUE(all.equal(got, want, tolerance = 1e-3))
  cat(if (ok) "as described " else "CHANGED      ", paste0(what, ":"), got, "\n")
  if (!ok) changed <<- TRUE
}
p <- c(.9, .2, .8, .9)
y <- c(1, 0, 1, 1)
f <- factor(y)
seen("log loss of 0 and 1", logLoss(y, p), -mean(log(c(.9, .8, .8, .9))))
seen("log loss of a factor", logLoss(f, p), -mean((y + 1) * log(p) - y * log(1 - p)))
seen("it is negative", logLoss(f, p) < 0, TRUE)
seen("Brier score of 0 and 1", brier(y, p), mean((y - p)^2))
seen("Brier score of a factor", brier(f, p), mean((y + 1 - p)^2))
seen("AUC of a factor", auc(f, p), 1)
seen("AUC of 1 and 2", auc(y + 1, p), 0)
three <- rbind(c(.7, .2, .1), c(.1, .8, .1), c(.1, .2, .7))
seen("log loss of classes 1, 2, 3", mlogLoss(1:3, three), -mean(log(c(.7, .8, .7))))
seen("classes 0, 1, 2: a number without a message", is.finite(mlogLoss(0:2, three)) && mlogLoss(0:2, three) > 1, TRUE)
rocr <- function(labels, what) ROCR::performance(ROCR::prediction(p, labels), what)@y.values[[1]]
seen("ROCR, root of the Brier score: labels 0 and 1", rocr(y, "rmse"), sqrt(mean((y - p)^2)))
seen("ROCR, the same: labels 1 and 2", rocr(y + 1, "rmse"), sqrt(mean((y + 1 - p)^2)))
refused <- inherits(try(rocr(y + 1, "mxe"), silent = TRUE), "try-error")
seen("ROCR refuses labels 1 and 2 for the cross entropy", refused, TRUE)
quit(status = as.integer(changed))
END
Rscript --vanilla finding.R
