#!/bin/sh
# Expected: a loss over rows of which one is NaN is NaN, or NA.
# Happens: mnLogLoss, multiClassSummary and twoClassSummary of caret leave the row out without a message. A network that is NaN for
#   its hardest rows has a better loss and AUC than one that answers. A probability of 0 at the label is kept, as 1e-15.
# Versions: r-cran-caret 6.0-93 of Debian 12.
# Matters: models are chosen by these summaries; a member with NaN scores wins.
# Source: mnLogLoss: complete.cases; multiClassSummary and twoClassSummary were seen by running.
. "$(dirname "$0")/lib.sh"
debian r-cran-caret 6.0
debian r-cran-modelmetrics 1.2.2.2
cat >finding.R <<'END'
suppressPackageStartupMessages(library(caret))
cat("caret", as.character(packageVersion("caret")), "\n")
changed <- FALSE
seen <- function(what, got, want) {
  ok <- isTRUE(all.equal(unname(got), want, tolerance = 1e-3))
  cat(if (ok) "as described " else "CHANGED      ", paste0(what, ":"), got, "\n")
  if (!ok) changed <<- TRUE
}
levels <- c("a", "b")
rows <- function(last) {
  p <- c(.9, .2, .6, last)
  data.frame(obs = factor(c("a", "b", "a", "b"), levels), pred = factor(c("a", "b", "a", "a"), levels), a = p, b = 1 - p)
}
right <- -log(c(.9, .8, .6))
seen("log loss, the last row wrong by .99", mnLogLoss(rows(.99), levels), mean(c(right, -log(.01))))
seen("log loss, the last row wrong by 1", mnLogLoss(rows(1), levels), mean(c(right, -log(1e-15))))
for (missing in c(NaN, NA)) {
  seen(paste("log loss, the last row", missing), mnLogLoss(rows(missing), levels), mean(right))
  seen("the same in multiClassSummary", multiClassSummary(rows(missing), levels)["logLoss"], mean(right))
}
seen("AUC, the last row wrong", twoClassSummary(rows(.99), levels)["ROC"], .5)
seen("AUC, the last row NaN", twoClassSummary(rows(NaN), levels)["ROC"], 1)
quit(status = as.integer(changed))
END
Rscript --vanilla finding.R
