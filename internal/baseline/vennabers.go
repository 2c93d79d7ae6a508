package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// sgdVennAbers and swaVennAbers are the last checkpoint and SWA with an inductive Venn–Abers predictor (Vovk et al. 2015).
var (
	sgdVennAbers = ofLast("sgd-venn-abers", "VennAbers", task.ByVennAbers)
	swaVennAbers = ofSWA("swa-venn-abers", "VennAbers", task.ByVennAbers)
)
