package statefile

import (
	"fmt"

	"github.com/swagwrap/swagwrap/weights"
)

// An Error describes a fault of a file: see [weights.Error].
type Error = weights.Error

// Hints that several refusals share.
const (
	saveAgain = "in Python: torch.save(torch.load(FILE, map_location=\"cpu\", weights_only=False)[\"state_dict\"], NEW), " +
		"with the key that holds the weights; load only files that you trust so"
	saveDense = "in Python: save the state_dict of the float model, with dense tensors of float32, float16, bfloat16 or float64"
)

// refuse says why a tensor cannot be read.
func refuse(format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Hint: saveDense}
}
