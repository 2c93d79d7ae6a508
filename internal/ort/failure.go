package ort

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A MemoryError reports that a model needs more memory than [Runtime.Limit] allows.
type MemoryError struct {
	Op, Node string // the operator and the node that needs the memory; "" if unknown
	Bytes    int64  // requested
	Left     int64  // remaining of the limit
	Limit    int64  // limit for all sessions together
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s asks for %s of memory, where %s are left of %s", who(e.Op, e.Node), megabytes(e.Bytes), megabytes(e.Left),
		megabytes(e.Limit))
}

// A GPUMemoryError reports that the GPU has no memory left. Other programs may use it, too.
type GPUMemoryError struct {
	Op, Node string // as of [MemoryError]
	Batch    int    // the smallest batch that was tried and could be divided no more; 0 if that is not known
}

func (e *GPUMemoryError) Error() string {
	s := who(e.Op, e.Node) + ": the memory of the GPU is used up"
	switch {
	case e.Batch == 1:
		s += " by a batch of one example"
	case e.Batch > 1:
		s += fmt.Sprintf(" by a batch of %d examples, which the network wants together", e.Batch)
	}
	return s
}
func (e *GPUMemoryError) Unwrap() error { return syscall.ENOMEM }

// A GPULostError reports that the GPU or its driver failed in the middle of a run. No run works in this process any more.
type GPULostError struct{ Why string } // in the driver's words

func (e *GPULostError) Error() string { return "the GPU failed in the middle of a run: " + e.Why }
func (e *GPULostError) Unwrap() error { return syscall.EIO }

// who describes a node in an error.
func who(op, node string) string {
	switch {
	case op == "":
		return "the model"
	case node == "":
		return fmt.Sprintf("a node (%s)", op)
	}
	return fmt.Sprintf("node %q (%s)", node, op)
}

// megabytes rounds up, so that an amount that is too large never looks small.
func megabytes(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20)
}

// Patterns of errors of ONNX Runtime and of the linker about memory, threads and open files, and of the failing
// node. Inside a Loop, If or Scan the last node of a message is the innermost.
var (
	overLimit = regexp.MustCompile(`Available memory of (\d+) is smaller than requested bytes of (\d+)`)
	noMemory  = regexp.MustCompile(`Failed to allocate memory for requested buffer of size (\d+)|std::bad_alloc|[Cc]annot allocate memory`)
	noGPU     = regexp.MustCompile(`CUDA failure 2: out of memory|CU(DNN|BLAS)_STATUS_ALLOC_FAILED`)
	lostGPU   = regexp.MustCompile(`CUDA failure (?:3|4|46|100|214|219|22\d|304|70\d|71\d|999): ([^;]*\w)|(CU(?:DNN|BLAS)_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR))|(VK_ERROR_DEVICE_LOST|[Dd]evice (?:is |was )?lost)`)
	noFile    = regexp.MustCompile(`[Tt]oo many open files`)
	noThread  = regexp.MustCompile(`pthread_create|std::thread|Resource temporarily unavailable`)
	running   = regexp.MustCompile(`while running (\w+) node\. Name:'(.*?)' Status Message: `)
)

// failure converts an error of the binding to one line. It removes the binding's own prefix and puts the argument what
// in front, unless it is "". An error about memory beyond the limit becomes a [*MemoryError]. If the system refuses
// something, the error is as of [shortage].
func (r *Runtime) failure(what, prefix string, err error) error {
	message := strings.TrimPrefix(err.Error(), prefix)
	var op, node string
	if all := running.FindAllStringSubmatch(message, -1); len(all) > 0 {
		op, node = all[len(all)-1][1], all[len(all)-1][2]
	}
	if m := overLimit.FindStringSubmatch(message); m != nil {
		left, _ := strconv.ParseInt(m[1], 10, 64)
		asked, _ := strconv.ParseInt(m[2], 10, 64)
		return &MemoryError{op, node, asked, left, r.limit.Load()}
	}
	if m := noMemory.FindStringSubmatch(message); m != nil {
		asked := ""
		if bytes, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			asked = ", which asks for " + megabytes(bytes)
		}
		return fmt.Errorf("%s%s: %w", who(op, node), asked, syscall.ENOMEM)
	}
	if noGPU.MatchString(message) {
		return &GPUMemoryError{Op: op, Node: node}
	}
	if m := lostGPU.FindStringSubmatch(message); m != nil {
		return &GPULostError{cmp.Or(m[1], m[2], m[3])}
	}
	switch short := shortage(message); short {
	case nil:
		return errors.New(what + ": " + shorten(message))
	case syscall.EAGAIN:
		return fmt.Errorf("%s: a thread cannot be started: %w", what, short)
	default:
		return fmt.Errorf("%s: %w", what, short)
	}
}

// shortage returns what the system lacks by a message: [syscall.ENOMEM], [syscall.EMFILE] or [syscall.EAGAIN] for
// threads. It returns nil for other messages.
func shortage(message string) error {
	switch {
	case noMemory.MatchString(message):
		return syscall.ENOMEM
	case noFile.MatchString(message):
		return syscall.EMFILE
	case noThread.MatchString(message):
		return syscall.EAGAIN
	}
	return nil
}

// scarce reports whether the machine lacks memory, threads or open files.
func scarce(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN}, func(errno error) bool {
		return errors.Is(err, errno)
	})
}

// codePlace matches a location in the sources of a build. It is a path and line before a function's signature, or a file
// name and line before a function's name.
var codePlace = regexp.MustCompile(`(\S*[/\\])?\w+\.(?:cc|cpp|cxx|h|hpp|cu|cuh|inl|inc):\d+ ?(\w+ )?`)

// withoutSources removes locations in the sources of ONNX Runtime. Path, line and function are useless to users, and
// the path reveals who built the library.
func withoutSources(s string) string {
	var b strings.Builder
	for {
		at := codePlace.FindStringSubmatchIndex(s)
		if at == nil {
			return b.String() + s
		}
		b.WriteString(s[:at[0]])
		switch path, word := at[2] >= 0, at[4]; {
		case path && word >= 0:
			s = afterSignature(s[word:])
		case path:
			s = afterSignature(s[at[1]:])
		default:
			s = s[at[1]:]
		}
	}
}

// afterSignature removes a C++ function signature from the start of s, if there is one. It ends where all brackets of
// the parameters are closed.
func afterSignature(s string) string {
	depth, seen := 0, false
	for i, c := range s {
		switch c {
		case '(', '[':
			depth, seen = depth+1, seen || c == '('
		case ')', ']':
			depth--
		}
		if depth < 0 {
			return s
		}
		if ends := i+1 == len(s) || s[i+1] == ' '; depth == 0 && seen && strings.ContainsRune(")>", c) && ends {
			s = strings.TrimPrefix(strings.TrimPrefix(s[i+1:], " "), "const ")
			if rest, ok := strings.CutPrefix(s, "[with "); ok {
				if _, rest, ok = strings.Cut(rest, "] "); ok {
					s = rest
				}
			}
			return s
		}
	}
	return s
}

// shorten converts a message to one line of at most 400 bytes without source locations.
func shorten(s string) string {
	const limit = 400
	s = withoutSources(strings.Join(strings.Fields(s), " "))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + " ..."
	}
	return s
}
