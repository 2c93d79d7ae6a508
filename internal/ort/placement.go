package ort

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A Placement says which nodes of a model run in its provider, and which in ONNX Runtime's own kernels. It comes from
// the profile of a run.
type Placement struct {
	Pieces int            // parts of the graph that the provider computes
	Others map[string]int // nodes that it does not compute, by operator
}

// String describes the placement, or returns "" if the provider computes everything.
func (p Placement) String() string {
	if len(p.Others) == 0 {
		return ""
	}
	total := 0
	var ops []string
	for _, op := range slices.SortedFunc(maps.Keys(p.Others), func(a, b string) int {
		return cmp.Or(p.Others[b]-p.Others[a], strings.Compare(a, b))
	}) {
		total += p.Others[op]
		ops = append(ops, fmt.Sprintf("%d %s", p.Others[op], op))
	}
	return fmt.Sprintf("%d nodes run on the CPU provider, between %d pieces (%s)", total, p.Pieces, strings.Join(ops, ", "))
}

// errNoNode reports that the provider computes no node of a network.
var errNoNode = errors.New("no node")

// Place runs a model once, on what inputs returns for its session, and reads from ONNX Runtime's profile which nodes the
// provider computes. It returns a [*LibraryError] if the provider computes none, because then the results would be the CPU
// provider's.
func (r *Runtime) Place(ctx context.Context, f onnxio.Filled, opts Options, inputs func(*Session) ([]Tensor, error)) (Placement, error) {
	dir, err := tempfile.Folder()
	if err != nil {
		return Placement{}, err
	}
	defer tempfile.Remove(dir)
	opts.profile = filepath.Join(dir, "profile")
	s, err := r.NewFilledSession(ctx, f, opts)
	if err != nil {
		return Placement{}, err
	}
	in, err := inputs(s)
	if err == nil {
		_, err = s.Run(ctx, in)
	}
	s.Close() // writes the profile
	if err != nil {
		return Placement{}, err
	}
	path, err := tempfile.Only(opts.profile + "*")
	if err != nil {
		return Placement{}, err
	}
	js, err := os.ReadFile(path)
	if err != nil {
		return Placement{}, tempfile.Temp(err)
	}
	p, err := readProfile(js, opts.Provider.kind().own)
	if err == nil && p.Pieces == 0 {
		err = &LibraryError{
			Path:     r.path,
			Reason:   "provider " + opts.Provider.Name + " takes no node of the network",
			Err:      errNoNode,
			Provider: opts.Provider.Name,
		}
	}
	return p, err
}

// readProfile counts the nodes in a profile by provider.
func readProfile(js []byte, provider string) (Placement, error) {
	var events []struct {
		Category string `json:"cat"`
		Name     string `json:"name"`
		Args     struct {
			Op       string `json:"op_name"`
			Provider string `json:"provider"`
		} `json:"args"`
	}
	if err := json.Unmarshal(js, &events); err != nil {
		return Placement{}, fmt.Errorf("profile of ONNX Runtime: %w", err)
	}
	p := Placement{Others: map[string]int{}}
	seen := map[string]bool{} // nodes in a Loop occur many times
	for _, e := range events {
		switch {
		case e.Category != "Node" || e.Args.Provider == "" || seen[e.Name]:
		case e.Args.Provider == provider:
			p.Pieces++
		default:
			p.Others[e.Args.Op]++
		}
		seen[e.Name] = true
	}
	return p, nil
}
