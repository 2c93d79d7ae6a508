package torch

import "fmt"

// An Error describes a fault of a file.
type Error struct {
	Path   string
	Tensor string // or ""
	What   string
	Hint   string // a solution, or ""
	Err    error  // or nil
}

func (e *Error) Error() string {
	s := e.Path + ": "
	if e.Tensor != "" {
		s += fmt.Sprintf("tensor %q: ", e.Tensor)
	}
	s += e.What
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Hints that several refusals share.
const (
	saveAgain = "in Python: torch.save(torch.load(FILE, map_location=\"cpu\", weights_only=False)[\"state_dict\"], NEW), " +
		"with the key that holds the weights; load only files that you trust so"
	saveDense = "in Python: save the state_dict of the float model, with dense tensors of float32, float16, bfloat16 or float64"
)
