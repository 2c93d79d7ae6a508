#!/bin/sh
# Expected: the calibration error of a set of rows does not depend on their order.
# Happens: getECE of CalibratR sorts rows into bins of equal size and cuts groups of equal scores as they come. Take 100 rows of
#   score .9, of which 90 are positive, and 100 of .1, of which 10 are: the exact error is 0.
#   Rows sorted by label give .16, shuffled rows .04 to .06.
# Versions: r-cran-calibratr 0.1.2 of Debian 12.
# Matters: ensembles of trees, votes and rounded files have equal scores, and files are often sorted by class.
# Source: seen by running.
. "$(dirname "$0")/lib.sh"
debian r-cran-calibratr 0.1.2
cat >finding.R <<'END'
library(CalibratR)
cat("CalibratR", as.character(packageVersion("CalibratR")), "\n")
changed <- FALSE
seen <- function(what, got, ok) {
  cat(if (ok) "as described " else "CHANGED      ", paste0(what, ":"), got, "\n")
  if (!ok) changed <<- TRUE
}
score <- rep(c(.9, .1), each = 100)
label <- c(rep(1:0, c(90, 10)), rep(0:1, c(90, 10)))
sorted <- getECE(label, score, 10)
seen("rows sorted by label", sorted, abs(sorted - .16) < 1e-6)
set.seed(1)
for (i in 1:3) {
  o <- sample(200)
  got <- getECE(label[o], score[o], 10)
  seen("rows shuffled", got, got > .01 && got < .12)
}
seen("two bins", getECE(label, score, 2), getECE(label, score, 2) < 1e-9)
quit(status = as.integer(changed))
END
Rscript --vanilla finding.R
