package open

import (
	"fmt"
	"os"
	"strings"

	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Source opens checkpoints. It holds the template for PyTorch checkpoints, if there is one.
type Source struct {
	Template *checkpoints.Template
	graph    *onnxio.Model // the graph that must be closed, or nil
}

// OpenSource opens the template of the options. Without one it uses the template of a posterior, which may
// be nil.
func (a *Opener) OpenSource(o SourceOptions, posterior *checkpoints.Template) (*Source, error) {
	path, proof, err := graphAndProof(o.Template)
	if err != nil {
		return nil, err
	}
	if path == "" {
		if o.StateDict.Set && posterior == nil {
			return nil, Usagef("it goes with "+setting.Template.String()+", the exported graph", "%s without %s", setting.StateDict,
				setting.Template)
		}
		if len(o.Unused) > 0 && posterior == nil {
			return nil, Usagef("it goes with "+setting.Template.String()+", the exported graph", "%s without %s", setting.Unused,
				setting.Template)
		}
		if o.StateDict.Set {
			posterior = posterior.Under(o.StateDict.Value)
		}
		if len(o.Unused) > 0 {
			posterior = posterior.Without(o.Unused)
		}
		return &Source{Template: posterior}, nil
	}
	m, err := onnxio.Open(path)
	if err != nil {
		return nil, WrongKind(err, path, kind.Model)
	}
	t := checkpoints.NewTemplate(m, nil)
	t.StateDict, t.Proof, t.Unused = o.StateDict.Value, proof, o.Unused
	if posterior != nil {
		t.Inherit(posterior.Recipe())
	}
	return &Source{t, m}, nil
}

// graphAndProof splits GRAPH=CHECKPOINT. Both names may contain the sign, so the files that exist decide.
func graphAndProof(template string) (graph, proof string, err error) {
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	if !strings.Contains(template, "=") || exists(template) {
		return template, "", nil
	}
	found := false
	for at, c := range template {
		if before, behind := template[:at], template[at+1:]; c == '=' && exists(before) {
			if exists(behind) {
				return before, behind, nil
			}
			if !found {
				graph, proof, found = before, behind, true // opening the checkpoint reports the error
			}
		}
	}
	if !found {
		return "", "", BadInput(fmt.Errorf("%s: no file has this name, and none has the part before a =", template),
			setting.Template.String()+" takes the exported graph, or GRAPH=CHECKPOINT")
	}
	return graph, proof, nil
}

// Graph returns the graph of GRAPH or GRAPH=CHECKPOINT.
func Graph(template string) string {
	if graph, _, err := graphAndProof(template); err == nil {
		return graph
	}
	return template
}

// Open opens checkpoints; the caller closes them, and then the source.
func (s *Source) Open(paths []string) ([]*onnxio.Model, error) {
	models, err := checkpoints.Open(paths, s.Template)
	return models, WrongCheckpoint(err)
}

// Remarks returns notes about parts of the checkpoints that are not in the template, and warnings for users of the
// checkpoints.
func (s *Source) Remarks(proved bool) (notes, warnings []string) {
	if r := s.Template.Recipe(); r != nil {
		return r.Notes(), r.Warnings(proved)
	}
	return nil, nil
}

// key returns the key of the weights in a checkpoint's file, or "".
func (s *Source) key(m *onnxio.Model) string {
	if _, ok := s.Template.Counts(m.Path); !ok {
		return ""
	}
	return s.Template.StateDict
}

// counts returns what the state_dict of a PyTorch checkpoint has counted. Its batches are −1 for a model.
func (s *Source) counts(m *onnxio.Model) checkpoints.Counts {
	c, _ := s.Template.Counts(m.Path)
	return c
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
	if statefile.Is(path) {
		f, err := statefile.Open(path)
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
