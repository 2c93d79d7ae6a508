package ort

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// A MemoryError says that a model asks for more memory than it may have: see
// [Runtime.Limit].
type MemoryError struct {
	Op, Node string // the operator and the name of the node that asks; "" where none is known
	Bytes    int64  // what it asks for
	Left     int64  // of the limit
	Limit    int64  // of all sessions together
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("%s asks for %s of memory, where %s are left of %s", who(e.Op, e.Node), megabytes(e.Bytes), megabytes(e.Left), megabytes(e.Limit))
}

// who names a node for a sentence.
func who(op, node string) string {
	switch {
	case op == "":
		return "the model"
	case node == "":
		return fmt.Sprintf("a node (%s)", op)
	}
	return fmt.Sprintf("node %q (%s)", node, op)
}

// megabytes rounds up, so that what is too much never reads as little.
func megabytes(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20)
}

// What ONNX Runtime says where memory or threads cannot be had, and of which node.
// Of nodes within a Loop, an If or a Scan the last is the innermost.
var (
	overLimit = regexp.MustCompile(`Available memory of (\d+) is smaller than requested bytes of (\d+)`)
	noMemory  = regexp.MustCompile(`Failed to allocate memory for requested buffer of size (\d+)|std::bad_alloc`)
	noThread  = regexp.MustCompile(`pthread_create|std::thread|Resource temporarily unavailable`)
	running   = regexp.MustCompile(`while running (\w+) node\. Name:'(.*?)' Status Message: `)
)

// failure makes an error of one line of what the binding returned, which may begin
// with its own words prefix; what comes before it, if anything, says what failed.
// Memory beyond the limit is a [*MemoryError]; what the system does not give is
// [syscall.ENOMEM] or [syscall.EAGAIN].
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
	if noThread.MatchString(message) {
		return fmt.Errorf("%s: a thread cannot be started: %w", what, syscall.EAGAIN)
	}
	return errors.New(what + ": " + shorten(message))
}

// source is where in the sources of a build something failed: a path and a line,
// before a function's signature, or a file's name and a line, before a function's name.
var source = regexp.MustCompile(`(\S*[/\\])?\w+\.(?:cc|cpp|cxx|h|hpp|cu|cuh|inl|inc):\d+ ?(\w+ )?`)

// withoutSources leaves out places in the sources of ONNX Runtime: path, line and
// function say nothing to users, and something of who built it.
func withoutSources(s string) string {
	var b strings.Builder
	for {
		at := source.FindStringSubmatchIndex(s)
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

// afterSignature cuts a C++ function's signature off the front of s, if there is one:
// up to where all brackets of its parameters are closed.
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

// shorten makes one line of at most 400 bytes out of a message, without places in
// sources.
func shorten(s string) string {
	const limit = 400
	s = withoutSources(strings.Join(strings.Fields(s), " "))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + " ..."
	}
	return s
}
