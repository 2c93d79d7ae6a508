package baseline

import "github.com/swagwrap/swagwrap/internal/task"

// swagTemp is SWAG with temperature scaling. It has one temperature for the average of the members' probabilities,
// softmax(log p̄ / T).
var swagTemp = &Method{
	Key: SWAGTemp, From: fromSWAG, Fits: true, Name: called("SWAG-Temp"), Needs: needsDeviations, Deploy: likeSWAG,
	Cost: shared(eachMember),
	Run:  func(w *work) error { return w.scaled(w.swagOf, task.OneNumber) },
}
