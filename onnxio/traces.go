package onnxio

import (
	"regexp"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"

	"github.com/swagwrap/swagwrap/weights"
)

// An exporter notes in a graph where each node comes from: folders of the machine, and lines of the user's source. No exported model
// shows them.

// message says which fields of a message of onnx.proto are texts for people, which hold properties, and which are messages that have such
// fields themselves.
type message struct {
	doc, metadata wire.Number
	within        map[wire.Number]*message
	model         bool // its properties are the user's own
}

// modelMessage describes a ModelProto.
var modelMessage = func() *message {
	value := &message{doc: wire.ValueDoc, metadata: wire.ValueMetadata}
	tensor := &message{doc: wire.TensorDoc, metadata: wire.TensorMetadata}
	attribute := &message{doc: wire.AttrDoc}
	node := &message{doc: wire.NodeDoc, metadata: wire.NodeMetadata, within: map[wire.Number]*message{wire.NodeAttribute: attribute}}
	graph := &message{doc: wire.GraphDoc, metadata: wire.GraphMetadata, within: map[wire.Number]*message{
		wire.GraphNode: node, wire.GraphInitializer: tensor, wire.GraphInput: value, wire.GraphOutput: value, wire.GraphValueInfo: value}}
	attribute.within = map[wire.Number]*message{
		wire.AttrTensor:  tensor,
		wire.AttrTensors: tensor,
		wire.AttrGraph:   graph,
		wire.AttrGraphs:  graph,
	}
	function := &message{doc: wire.FunctionDoc, metadata: wire.FunctionMetadata, within: map[wire.Number]*message{
		wire.FunctionNode: node, wire.FunctionAttribute: attribute, wire.FunctionValueInfo: value}}
	return &message{
		doc:      wire.ModelDoc,
		metadata: wire.ModelMetadata,
		model:    true,
		within:   map[wire.Number]*message{wire.ModelGraph: graph, wire.ModelFunction: function},
	}
}()

// withoutTraces returns the template, of a model with layout l, without texts that exporters wrote for people. All
// other bytes stay verbatim.
func (t *Template) withoutTraces(path string, l *weights.Layout) (*Template, error) {
	m, err := t.Model(path, l)
	if err != nil {
		return nil, err
	}
	f := &traceFinder{Scanner: wire.NewScanner(m.data)}
	if err := f.find(&wire.Message{Length: -1, Body: wire.Span{End: m.data.Size}}, modelMessage); err != nil {
		return nil, err
	}
	if f.traces == nil {
		return t, nil
	}
	return t.edited(path, l, func(e *Edit) { e.splices = f.traces })
}

// traceFinder finds the fields to remove.
type traceFinder struct {
	*wire.Scanner
	traces []wire.Splice
}

func (s *traceFinder) find(in *wire.Message, of *message) error {
	return s.Fields(in.Body, func(f wire.Field) error {
		if f.Type != wire.Bytes {
			return nil
		}
		isTrace := f.Num == of.doc && f.Body.Len() > 0 // an empty text shows nothing
		if f.Num == of.metadata && of.metadata != 0 {
			key, value, err := s.Entry(f)
			if err != nil {
				return err
			}
			isTrace = of.shows(key, value)
		}
		if isTrace {
			s.traces = append(s.traces, wire.Splice{At: f.Span(), In: in})
			return nil
		}
		if within := of.within[f.Num]; within != nil {
			return s.find(&wire.Message{Parent: in, Tag: f.Tag, Length: f.Length, Body: f.Body}, within)
		}
		return nil
	})
}

// fullPath matches the beginning of a path from a root.
var fullPath = regexp.MustCompile(`(^|[\s"'(=:,\[])(/[^\s/]+/|~/|[A-Za-z]:[\\/]|\\\\)`)

// shows reports whether a property shows the user's source or folders. Of the model's own properties, which the user wrote, only a stack
// trace of Python does.
func (of *message) shows(key, value string) bool {
	if strings.Contains(key, "stack_trace") || strings.Contains(value, `File "`) {
		return true
	}
	return !of.model && (strings.HasSuffix(key, ".fx_node") || fullPath.MatchString(value))
}
