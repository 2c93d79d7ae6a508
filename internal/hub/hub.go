// Package hub makes the files of a folder for the Hugging Face Hub: config.json with the names of classes, and README.md with the
// measured figures in its YAML. It also reads the figures from the JSON of compare.
//
// # Invariants
//
// No figure is made up. A figure stands in README.md only if compare measured it for the very posterior and members: see [Figures.Find].
package hub

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/target"
)

// A Card is what README.md says.
type Card struct {
	Name, What     string   // the model's name, and what it is made of
	Library        string   // that loads the weights, or onnx
	Task           string   // of the model card
	Inputs         Inputs   // what an example is
	Positions      bool     // an example has many positions with scores
	Classes        []string // or nil
	Takes, Gives   string
	Weights        string   // the file or files with the weights, or ""
	Turned         bool     // pictures are turned as their Exif orientation says
	Preprocess     string   // the program whose words preprocessor_config.json has, or ""
	Calibration    string   // that is in the model, or must be applied, or ""
	Guarantee      string   // of each prediction, and the data that chose it, or ""
	Decides        []string // outputs of the guarantee
	Figures        *Measured
	Limits         []string
	Producer       string
	Members        int
	ScoresOfMember bool // model.onnx gives scores of one network
}

// Inputs are kinds of examples.
type Inputs int

// The kinds.
const (
	Other Inputs = iota
	Pictures
	Texts
	Tables
)

// pipelines are the Hub's names of tasks. A combination that is not here has none.
var pipelines = map[string]map[Inputs]string{
	"classes":    {Pictures: "image-classification", Texts: "text-classification", Tables: "tabular-classification"},
	"binary":     {Pictures: "image-classification", Texts: "text-classification", Tables: "tabular-classification"},
	"labels":     {Pictures: "image-classification", Texts: "text-classification", Tables: "tabular-classification"},
	"ordinal":    {Pictures: "image-classification", Texts: "text-classification", Tables: "tabular-classification"},
	"regression": {Tables: "tabular-regression"},
	"next-token": {Texts: "text-generation"},
}

var ofPositions = map[string]map[Inputs]string{"classes": {Pictures: "image-segmentation", Texts: "token-classification"}}

// Pipeline returns the Hub's name of a task, or "". positions says that an example has many positions, each with scores of its own.
func Pipeline(task string, of Inputs, positions bool) string {
	if positions && !generates(task) {
		return ofPositions[task][of]
	}
	return pipelines[task][of]
}

// Config returns config.json: base, the checkpoint's own or nil, with the names of classes. If they are not
// known, names that base has stay.
func Config(base []byte, task string, classes []string, known bool) ([]byte, error) {
	all := make(map[string]json.RawMessage)
	if base != nil {
		if err := json.Unmarshal(base, &all); err != nil {
			return nil, fmt.Errorf("config.json: %w", err)
		}
	}
	set := func(key string, v any) {
		js, _ := json.Marshal(v) // maps of texts and numbers
		all[key] = js
	}
	if own := all["id2label"]; classes != nil && (own == nil || known) {
		names, numbers := make(map[string]string), make(map[string]int)
		for k, name := range classes {
			names[strconv.Itoa(k)], numbers[name] = name, k
		}
		set("id2label", names)
		set("label2id", numbers)
		if all["label_names"] != nil {
			set("label_names", classes)
		}
	}
	if base == nil {
		set("swagwrap_task", task)
	}
	js, err := json.MarshalIndent(all, "", "  ")
	return append(js, '\n'), err
}

// generates reports whether the classes of a task are the tokens of a vocabulary, which has files of its own.
func generates(task string) bool { return task == "next-token" }

// Labels returns the names of n classes: those that are known, or those that transformers gives to classes without names.
func Labels(task string, known []string, n int, of target.Kind) []string {
	switch {
	case generates(task) || of == target.Numbers:
		return nil
	case len(known) > 0:
		return known
	case task == "binary": // one logit, and two labels
		n = 2
	}
	var names []string
	for k := range n {
		names = append(names, "LABEL_"+strconv.Itoa(k))
	}
	return names
}

// Library returns the library that loads weights with this config.json.
func Library(base []byte) string {
	var c struct {
		ModelType    string `json:"model_type"`
		Architecture string `json:"architecture"`
	}
	switch err := json.Unmarshal(base, &c); {
	case err != nil:
		return "onnx"
	case c.ModelType != "":
		return "transformers"
	case c.Architecture != "":
		return "timm"
	}
	return "onnx"
}

// quoted returns a text for YAML. Texts of JSON are texts of YAML.
func quoted(s string) string {
	js, _ := json.Marshal(s)
	return string(js)
}

// bullets is a list of Markdown. A text is one line.
func bullets(texts []string) string {
	var b strings.Builder
	for _, s := range texts {
		fmt.Fprintf(&b, "- %s\n", strings.NewReplacer("\n", " ", "<", "&lt;").Replace(s))
	}
	return b.String()
}

// A TimmModel is a network of timm.
type TimmModel struct {
	Architecture string
	Args         map[string]any // of timm.create_model
	Scores       int            // of an example, which timm calls classes; 0 if unknown
	Preprocess   map[string]any // in timm's words, or nil
	ClassNames   []string       // or nil
}

// Config returns a config.json from which timm.create_model makes the network.
func (m TimmModel) Config() ([]byte, error) {
	about := make(map[string]any, len(m.Preprocess)+1)
	for key, v := range m.Preprocess {
		about[key] = v
	}
	all := map[string]any{"architecture": m.Architecture, "pretrained_cfg": about}
	if m.Scores > 0 {
		all["num_classes"], about["num_classes"] = m.Scores, m.Scores
	}
	if len(m.Args) > 0 {
		all["model_args"] = m.Args
	}
	if m.ClassNames != nil {
		all["label_names"] = m.ClassNames
	}
	return json.Marshal(all)
}
