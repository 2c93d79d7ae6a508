package infer

import (
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Takes says in words what the input permits: whether examples can be pictures,
// and how many come at a time.
func (g *Graph) Takes() string {
	shape := g.Input.Shape[1:]
	what := fmt.Sprintf("arrays of shape %s", onnxio.FormatShape(shape, g.Input.Dims[1:]))
	s, err := preprocess.Settings{}.Resolve(shape)
	if err == nil || errors.Is(err, preprocess.ErrNoSize) {
		colours := map[string]string{"rgb": "coloured", "grey": "grey"}[s.Channels]
		what = colours + " pictures, or " + what
	}
	if n := g.Input.Shape[0]; n >= 0 {
		return fmt.Sprintf("%s, in batches of %d only", what, n)
	}
	return what
}

// Gives says in words what the output permits. It fails where the scores are of no
// task, and, with a [*task.Unclear], where they could be of several.
func (g *Graph) Gives() (string, error) {
	name := g.card
	if name == "" {
		var err error
		if name, err = g.Tell(0); err != nil {
			return "", err
		}
	}
	if g.width == 0 {
		return fmt.Sprintf("output %q, for the task %q", g.scores.Output, name), nil
	}
	t, err := g.Task(int(g.width))
	if err != nil {
		return "", err
	}
	return t.Describe(), nil
}
