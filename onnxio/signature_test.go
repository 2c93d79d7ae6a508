package onnxio

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Functions within functions are counted as a runtime writes them out, and far too
// many are refused before that. Loops are seen in bodies too.
func TestSignature(t *testing.T) {
	bombs := filepath.Join("..", "cmd", "swagwrap", "testdata", "bombs")
	_, err := Open(filepath.Join(bombs, "functions.onnx"))
	if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), `make more than 16384 nodes of the 65 in the file`) {
		t.Errorf("got %v", err)
	}
	for file, want := range map[string]Signature{
		filepath.Join(bombs, "loop.onnx"):              {Nodes: 7, Loops: true},
		filepath.Join("testdata", "batchnorm-if.onnx"): {Nodes: -1},
		filepath.Join("testdata", "raw-f32.onnx"):      {Nodes: -1},
	} {
		m, err := Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if got := m.Signature(); got.Loops != want.Loops || want.Nodes > 0 && got.Nodes != want.Nodes || got.Nodes < int64(len(m.Graph.Nodes)) {
			t.Errorf("%s: %d nodes, loops: %v", file, got.Nodes, got.Loops)
		}
	}
}

// A function that calls itself has no end.
func TestRecursiveFunction(t *testing.T) {
	call := Node{OpType: "f", Domain: "d"}
	m := Model{Graph: &Graph{Nodes: []Node{call}}, Functions: []*Graph{{Name: "f", Domain: "d", Nodes: []Node{call}}}}
	if err := m.inline(); err == nil || !strings.Contains(err.Error(), "calls itself") {
		t.Errorf("got %v", err)
	}
	m.Functions[0].Domain = "another"
	if err := m.inline(); err != nil || m.nodes != 1 {
		t.Errorf("%d nodes, %v", m.nodes, err)
	}
}
