// Package stdio reports whether this process was started with a closed standard output, for example by the shell's >&-.
//
// Go's runtime opens /dev/null as standard output if it was closed, before any Go code runs. All output is then lost
// without an error. Therefore a C constructor, which runs earlier, checks the file descriptor.
//
// # Concurrency
//
// Closed may be called from any number of goroutines.
package stdio

// int swagwrap_stdout_was_closed(void);
import "C"

// Closed reports whether standard output was closed when the process started.
func Closed() bool { return C.swagwrap_stdout_was_closed() != 0 }
