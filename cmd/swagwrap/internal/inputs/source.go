package inputs

import (
	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// A Source opens checkpoints. It holds the template for PyTorch checkpoints, if there is one.
type Source struct {
	Template *checkpoints.Template
	graph    *onnxio.Model // to be closed, or nil
	c        *cli.Context
}

// OpenSource opens the template that the flags name. Without --template it uses the template of a posterior, which may
// be nil.
func OpenSource(c *cli.Context, posterior *checkpoints.Template) (*Source, error) {
	path := c.String("template")
	if path == "" {
		for _, flag := range []string{"state-dict", "template-checkpoint"} {
			if c.IsSet(flag) && (flag != "state-dict" || posterior == nil) {
				return nil, flags.Usagef("it goes with --template, the exported graph", "--%s without --template", flag)
			}
		}
		if c.IsSet("state-dict") {
			posterior = posterior.Under(c.String("state-dict"))
		}
		return &Source{Template: posterior, c: c}, nil
	}
	m, err := onnxio.Open(path)
	if err != nil {
		return nil, WrongKind(c, err, path, Model)
	}
	t := checkpoints.NewTemplate(m, nil)
	t.StateDict, t.Proof = c.String("state-dict"), c.String("template-checkpoint")
	return &Source{t, m, c}, nil
}

// Open opens checkpoints; the caller closes them, and then the source.
func (s *Source) Open(paths []string) ([]*onnxio.Model, error) {
	models, err := checkpoints.Open(paths, s.Template)
	return models, WrongCheckpoint(s.c, err)
}

// recipe says how checkpoints were read with the template. It is nil if none was.
func (s *Source) recipe() *checkpoints.Recipe {
	if s.Template == nil {
		return nil
	}
	return s.Template.Recipe()
}

// Remarks returns notes about parts of the checkpoints that are not in the template, and warnings for users of the
// checkpoints.
func (s *Source) Remarks() (notes, warnings []string) {
	if r := s.recipe(); r != nil {
		return r.Notes(), r.Warnings()
	}
	return nil, nil
}

// key returns the key of the weights in a checkpoint's file, or "".
func (s *Source) key(m *onnxio.Model) string {
	if s.Template == nil || !torch.Is(m.Path) {
		return ""
	}
	return s.Template.StateDict
}

// Close closes the template.
func (s *Source) Close() error {
	if s == nil || s.graph == nil {
		return nil
	}
	return s.graph.Close()
}

// CloseModels closes checkpoints.
func CloseModels(models []*onnxio.Model) {
	for _, m := range models {
		m.Close()
	}
}

// inputCheckpoint registers the files of a checkpoint as inputs. It opens and closes them.
func inputCheckpoint(path string) error {
	if torch.Is(path) {
		f, err := torch.Open(path)
		if err == nil {
			f.Close()
		}
		return err
	}
	m, err := onnxio.Open(path)
	if err == nil {
		m.Close()
	}
	return err
}
