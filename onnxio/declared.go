package onnxio

import (
	"strings"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
)

// Declared is the exporter's metadata of a tensor. PyTorch's exporter writes it if it traces with torch.export (the
// default since PyTorch 2.9).
type Declared struct {
	// Kind is PARAMETER, BUFFER or CONSTANT_TENSOR, like torch.export's InputKind, or "" without metadata.
	Kind string
	// Folded are the names of the values that the exporter computed the tensor from. They are no longer in the graph.
	Folded []string
}

// Keys of the metadata.
const (
	kindKey   = "pkg.torch.export.graph_signature.InputSpec.kind"
	foldedKey = "pkg.onnxscript.optimizer.folded_from"
)

// Declared returns the exporter's metadata of the tensors of the main graph, by name. It skips metadata that cannot
// be read.
func (m *Model) Declared() map[string]Declared {
	out := make(map[string]Declared)
	s := wire.NewScanner(m.data)
	for _, at := range m.Graph.inferred {
		_ = s.Fields(at, func(f wire.Field) error {
			name, d, err := declared(s, f)
			if err == nil && (d.Kind != "" || d.Folded != nil) {
				out[name] = d
			}
			return err
		})
	}
	return out
}

// declared reads a ValueInfoProto.
func declared(s *wire.Scanner, f wire.Field) (name string, d Declared, err error) {
	err = s.Within(f, func(f wire.Field) (err error) {
		switch f.Num {
		case wire.ValueName:
			name, err = s.String(f)
		case wire.ValueMetadata:
			var key, value string
			switch key, value, err = s.Entry(f); key {
			case kindKey:
				d.Kind = value
			case foldedKey:
				d.Folded = quoted(value)
			}
		}
		return err
	})
	return name, d, err
}

// quoted returns the strings of a list printed by Python: ['a', 'b'].
func quoted(list string) (out []string) {
	parts := strings.Split(list, "'")
	for i := 1; i < len(parts); i += 2 {
		out = append(out, parts[i])
	}
	return out
}
