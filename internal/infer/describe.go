package infer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
)

// TakesPictures reports whether an input may take pictures.
func (g *Graph) TakesPictures() bool {
	if len(g.Inputs) > 1 {
		return slices.Contains(dataset.Pictures(g.Fields(), preprocess.Settings{}), true)
	}
	_, may := g.pictures()
	return may
}

// Colours reports whether the only input takes pictures of three channels.
func (g *Graph) Colours() bool {
	if len(g.Inputs) > 1 {
		return false
	}
	s, may := g.pictures()
	return may && s.Planes() == 3
}

// pictures returns the settings of the only input for pictures, and whether it may take pictures.
func (g *Graph) pictures() (preprocess.Settings, bool) {
	s, err := preprocess.Settings{}.Resolve(g.Input.Shape[1:])
	return s, err == nil || errors.Is(err, preprocess.ErrNoSize)
}

// Takes describes the inputs in words: whether examples can be pictures, and how many come at a time.
func (g *Graph) Takes() string {
	var what string
	if fields := g.Fields(); len(fields) > 1 {
		var each []string
		take := dataset.Pictures(fields, preprocess.Settings{})
		for i, f := range fields {
			s := fmt.Sprintf("%q: %s %s", f.Name, f.Type, onnxio.FormatShape(f.Shape, f.Dims))
			if take[i] {
				s += " (or pictures)"
			}
			each = append(each, s)
		}
		what = "arrays of the names " + strings.Join(each, ", ")
	} else {
		what = "arrays of shape " + onnxio.FormatShape(g.Input.Shape[1:], g.Input.Dims[1:])
		if s, may := g.pictures(); may {
			what = map[string]string{"rgb": "coloured", "grey": "grey"}[s.Channels] + " pictures, or " + what
		}
	}
	if n := g.Input.Shape[0]; n >= 0 {
		what += fmt.Sprintf(", in batches of %d only", n)
	}
	var pairs []string
	for _, p := range g.States() {
		pairs = append(pairs, fmt.Sprintf("%s=%s (batch axis %d)", p.In, p.Out, p.Axis))
	}
	if n := len(pairs); n > 4 { // a cache has two for each layer
		pairs = append(pairs[:2], fmt.Sprintf("and %d more", n-2))
	}
	if pairs != nil {
		what += "; carries the states " + strings.Join(pairs, ", ")
	}
	return what
}

// Gives describes the output in words. It fails if the scores belong to no task. It fails with a [*task.AmbiguousTask] if
// they could belong to several.
func (g *Graph) Gives() (string, error) {
	name := g.card
	if name == "" {
		var err error
		if name, err = g.InferTask(0); err != nil {
			return "", err
		}
	}
	if g.layout.Count == 0 {
		return fmt.Sprintf("output %q, for the task %q", g.scores.Output, name), nil
	}
	t, err := g.Task(g.layout)
	if err != nil {
		return "", err
	}
	meaning := t.About().Meaning
	if g.scores.Open {
		meaning += g.Told()
	}
	return meaning, nil
}

// Told says what the graph tells of the form of the scores, as a sentence to append. It is "" where an activation shows it.
func (g *Graph) Told() string {
	switch {
	case g.Form() != "":
		return ""
	case g.scores.Open:
		return ". Only their values tell whether they are logits or probabilities (" + setting.Scores.String() + ")"
	}
	return ". Those of classes or labels are logits: a layer with weights ends the graph"
}

// openForm sets whether only values can tell the form of the scores, before the first run.
func (g *Graph) openForm(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.scores.Open != open {
		g.scores.Open, g.task = open, nil
	}
}
