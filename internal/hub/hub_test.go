package hub

import (
	"encoding/json"
	"strings"
	"testing"
)

// Names of classes that the posterior does not know stay as the checkpoint has them.
func TestConfig(t *testing.T) {
	t.Parallel()
	base := `{"model_type":"vit","id2label":{"0":"cat"},"label2id":{"cat":0}}`
	for _, tt := range []struct {
		base, want string
		known      bool
	}{
		{base, `"0": "cat"`, false},
		{base, `"0": "dog"`, true},
		{`{"model_type":"vit"}`, `"0": "dog"`, false},
		{"", `"dog": 0`, false},
	} {
		var b []byte
		if tt.base != "" {
			b = []byte(tt.base)
		}
		got, err := Config(b, "classes", []string{"dog"}, tt.known)
		if err != nil || !strings.Contains(string(got), tt.want) {
			t.Errorf("%q: %s, %v, want %s", tt.base, got, err, tt.want)
		}
	}
	if got := quoted("a: \"b\"\n"); got != `"a: \"b\"\n"` {
		t.Errorf("a text for YAML: %s", got)
	}
}

// timm.create_model reads the name, the arguments and the number of classes, and all else from pretrained_cfg.
func TestTimmConfig(t *testing.T) {
	m := TimmModel{Architecture: "resnet18", Args: map[string]any{"in_chans": 1}, Scores: 3, Preprocess: map[string]any{"crop_pct": 0.9}, ClassNames: []string{"a", "b", "c"}}
	base, err := m.Config()
	if err != nil {
		t.Fatal(err)
	}
	if Library(base) != "timm" {
		t.Errorf("the library is %s", Library(base))
	}
	got, err := Config(base, "classes", m.ClassNames, true)
	if err != nil {
		t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(got, &c); err != nil {
		t.Fatal(err)
	}
	js, _ := json.Marshal([]any{c["architecture"], c["model_args"], c["num_classes"], c["pretrained_cfg"], c["label_names"], c["id2label"], c["swagwrap_task"]})
	if want := `["resnet18",{"in_chans":1},3,{"crop_pct":0.9,"num_classes":3},["a","b","c"],{"0":"a","1":"b","2":"c"},null]`; string(js) != want {
		t.Errorf("%s, want %s", js, want)
	}
}
