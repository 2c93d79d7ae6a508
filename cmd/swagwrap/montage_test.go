package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// floats is a Dataset of values as a network takes them.
type floats struct {
	shape    []int64
	examples [][]float32
}

func (d floats) Len() int                  { return len(d.examples) }
func (d floats) Shape() []int64            { return d.shape }
func (d floats) Labels() target.Target     { return target.Target{} }
func (d floats) ClassNames() []string      { return nil }
func (d floats) Name(i int) string         { return fmt.Sprintf("x.npy[%d]", i) }
func (d floats) Sources() []dataset.Source { return []dataset.Source{{Path: "x.npy"}} }

func (d floats) Read(dst dataset.Values, i int) error {
	if d.examples[i] == nil {
		return errors.New("x.npy: gone")
	}
	copy(dst.Floats, d.examples[i])
	return nil
}

func TestMontageFlags(t *testing.T) {
	t.Parallel()
	d := floats{[]int64{1, 1, 2}, [][]float32{{0, 1}, nil}}
	for _, tt := range []struct {
		path string
		data dataset.Dataset
		want string // of the error; "nothing" or "a montage" without one
	}{
		{"", d, "nothing"},
		{"a.html", d, "a montage"},
		{"a.HTM", d, "a montage"},
		{"a.pdf", d, `unknown format ".pdf", want .html`},
		{"a.html", floats{shape: []int64{784}}, "x.npy: examples of shape [784] cannot be shown"},
	} {
		got := ""
		m, err := newMontage(tt.path, tt.data, preprocess.Settings{})
		switch {
		case err != nil:
			if got = err.Error(); console.ExitCode(t.Context(), err) != 64 {
				t.Errorf("%q: exit code %d", tt.path, console.ExitCode(t.Context(), err))
			}
		case m == nil:
			got = "nothing"
		default:
			got = "a montage"
			for i := range tt.data.Len() {
				m.Add(i, task.Tile{Lines: []task.Line{{Text: "dog", Value: "50.0 %", Part: 0.5}}, Uncertainty: float64(i)})
			}
			var b bytes.Buffer
			err = m.WriteHTML(&b)
			if err != nil || b.Len() == 0 {
				t.Errorf("%q: %d bytes, %v", tt.path, b.Len(), err)
			}
			if page := b.String(); !strings.Contains(page, "x.npy[0]: dog 50.0 %") || !strings.Contains(page, "x.npy: gone") {
				t.Errorf("%q: the page lacks an example:\n%s", tt.path, page)
			}
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%q: %s, want %s", tt.path, got, tt.want)
		}
	}
}
