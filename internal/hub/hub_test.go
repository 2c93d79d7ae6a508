package hub

import (
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
