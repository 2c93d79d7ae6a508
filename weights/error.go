package weights

import "fmt"

// An Error describes a fault of a file and, if possible, a solution. The input causes it, never the machine.
type Error struct {
	Path   string // the file, or ""
	Tensor string // name of the tensor, or ""
	What   string
	Hint   string // a solution, or ""
	Err    error  // the cause, or nil
}

func (e *Error) Error() string {
	s := ""
	if e.Path != "" {
		s = e.Path + ": "
	}
	if e.Tensor != "" {
		s += fmt.Sprintf("tensor %q: ", e.Tensor)
	}
	s += e.What
	if e.Err != nil {
		if e.What != "" {
			s += ": "
		}
		s += e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
