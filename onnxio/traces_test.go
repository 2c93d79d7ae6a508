package onnxio_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// field encodes a field that holds bytes.
func field(num protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(parts, nil))
}

func str(num protowire.Number, s string) []byte { return field(num, []byte(s)) }

func number(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func entry(num protowire.Number, key, value string) []byte {
	return field(num, str(1, key), str(2, value))
}

// TestTraces tests that no text of the exporter about the user's source is left in an exported model, wherever onnx.proto has room for one,
// and that the model is otherwise the same.
func TestTraces(t *testing.T) {
	const trace = "  File \"/home/someone/secret/net.py\", line 7, in forward\n    return self.head(x)"
	model := func(with bool) []byte {
		doc := func(num protowire.Number) []byte {
			if !with {
				return nil
			}
			return str(num, trace)
		}
		notes := func(num protowire.Number) []byte {
			if !with {
				return entry(num, "pkg.torch.onnx.class_hierarchy", "['torch.nn.modules.linear.Linear']")
			}
			return bytes.Join([][]byte{entry(num, "pkg.torch.onnx.stack_trace", trace), entry(num, "pkg.torch.onnx.class_hierarchy", "['torch.nn.modules.linear.Linear']"),
				entry(num, "pkg.torch.onnx.fx_node", "%secret = call"), entry(num, "source", "/home/someone/secret/net.py")}, nil)
		}
		value := func(num protowire.Number, name string) []byte {
			return field(num, str(1, name), field(2, field(1, number(1, 1), field(2, field(1, number(1, 2))))), doc(3), notes(4))
		}
		tensor := func(num protowire.Number, name string) []byte {
			return field(num, number(1, 2), number(2, 1), str(8, name), field(9, make([]byte, 8)), doc(12), notes(16))
		}
		node := func(num protowire.Number, op, in, out string, attributes ...[]byte) []byte {
			return field(num, str(1, in), str(2, out), str(4, op), bytes.Join(attributes, nil), doc(6), notes(9))
		}
		inner := field(6, node(1, "Identity", "x", "z"), str(2, "then"), tensor(5, "c"), value(12, "z"), value(13, "z"), doc(10), notes(16))
		branch := func(name string) []byte { return field(5, str(1, name), inner, number(20, 5), doc(13)) }
		constant := field(5, str(1, "value"), tensor(5, ""), number(20, 4), doc(13))
		graph := field(7, node(1, "Constant", "", "k", constant), node(1, "If", "b", "i", branch("then_branch"), branch("else_branch")),
			node(1, "Add", "x", "y"), str(2, "g"), tensor(5, "w"), value(11, "x"), value(12, "y"), value(13, "i"), doc(10), notes(16))
		function := field(25, str(1, "F"), node(7, "Identity", "a", "b"), doc(8), str(10, "own"), value(12, "a"), notes(14))
		top := [][]byte{number(1, 10), str(2, "pytorch"), doc(6), graph, field(8, number(2, 18)), entry(14, "data", "/home/someone/data"), function}
		if with {
			top = append(top, entry(14, "pkg.torch.onnx.stack_trace", trace))
		}
		return bytes.Join(top, nil)
	}
	render := func(b []byte, export bool) []byte {
		t.Helper()
		m, err := onnxio.Parse("m.onnx", b)
		if err != nil {
			t.Fatal(err)
		}
		none := &weights.Layout{}
		template, err := onnxio.NewTemplate(m, none)
		if export {
			template, err = onnxio.NewExportTemplate(m, none)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := template.Render(none, weights.Slice{}, weights.Slice{})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	with := model(true)
	if !bytes.Equal(render(with, false), with) {
		t.Error("a template that is not exported has other bytes than its model")
	}
	got := render(with, true)
	for _, secret := range []string{"File", "secret", "someone/secret", "forward"} {
		if strings.Contains(string(got), secret) {
			t.Errorf("the exported model has %q", secret)
		}
	}
	if want := render(model(false), true); !bytes.Equal(got, want) {
		t.Errorf("the exported model has %d bytes, want the %d of the same model without traces", len(got), len(want))
	}
	if !strings.Contains(string(got), "/home/someone/data") {
		t.Error("a property that the user wrote is lost")
	}
}
