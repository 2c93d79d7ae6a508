package listing

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

func TestReadClassNames(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"lines", "cat\r\n wolf hound \nemu\n\n", "cat|wolf hound|emu"},
		{"list", `["cat", "dog"]`, "cat|dog"},
		{"object", `{"1": "dog", "0": "cat"}`, "cat|dog"},
		{"id2label", `{"model_type": "vit", "id2label": {"0": "cat", "1": "dog"}, "label2id": {"cat": 0}}`, "cat|dog"},
		{"timm", `{"architecture": "x", "label_names": ["n01", "n02"], "pretrained_cfg": {}}`, "n01|n02"},
		{"timm, inside", `{"pretrained_cfg": {"label_names": ["n01", "n02"]}}`, "n01|n02"},
		{"label2id", `{"dog": 1, "cat": 0}`, "cat|dog"},
		{"label2id of texts", `{"dog": "1", "cat": "0"}`, "cat|dog"},
		{"label2id in a config", `{"model_type": "vit", "label2id": {"cat": 1, "dog": 0}}`, "dog|cat"},
		{"class_to_idx", `{"class_to_idx": {"cat": 1, "dog": 0}}`, "dog|cat"},
		{"Keras", `{"0": ["n01440764", "tench"], "1": ["n01443537", "goldfish"]}`, "tench|goldfish"},
		{"Keras, a name twice", `{"0": ["n02012849", "crane"], "1": ["n03126707", "crane"]}`, "n02012849|n03126707"},
		{"numbers as names", `{"0": "7", "1": "3"}`, "7|3"},
		{"datasets", `{"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}`, "cat|dog"},
		{"twice", "crane\ncrane\n", "crane|crane"},

		{"empty", "\n", "no class names, want one a line"},
		{"empty line", "cat\n\ndog\n", "class 1 has an empty name"},
		{"UTF-16", "\xff\xfec\x00a\x00t\x00", "not a text in UTF-8"},
		{"NUL", "cat\x00\ndog", "not a text in UTF-8"},
		{"blank lines", "a" + strings.Repeat("\n", 1<<20) + "b", "more than 1048576 names, or commas"},
		{"long list", "[" + strings.Repeat(`"",`, 1<<20) + `""]`, "more than 1048576 names, or commas"},
		{"hole", `{"0": "cat", "2": "dog"}`, `class "2" of 2, want each number from 0 to 1 once`},
		{"same number", `{"0": "cat", "00": "dog"}`, `of 2, want each number from 0 to 1 once`},
		{"other object", `{"model_type": "vit"}`, `class "model_type" of 1`},
		{"nested", `{"a": {}}`, `"a" has a value of another kind, want {"0": "cat", "1": "dog"} or {"cat": 0, "dog": 1}`},
		{"numbers", `[1, 2]`, "a JSON list of other things than names"},
		{"label2id with a hole", `{"cat": 0, "dog": 2}`, "want each number from 0 to 1 once"},
		{"fractions", `{"cat": 0.5}`, "want each number from 0 to 0 once"},
		{"broken", `{"cat": `, "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "names")
			if err := os.WriteFile(path, []byte(tt.file), 0o666); err != nil {
				t.Fatal(err)
			}
			names, err := ReadClassNames(path)
			got := strings.Join(names, "|")
			if err != nil {
				got = err.Error()
			}
			if got != tt.want && !(strings.HasPrefix(got, path+": ") && strings.Contains(got, tt.want)) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
	// A folder has the names of its class folders, in torchvision's order.
	dir := t.TempDir()
	if _, err := ReadClassNames(dir); err == nil || err.Error() != dir+": has no class folders" {
		t.Error(err)
	}
	for _, name := range []string{"b", "a", "B", ".hidden"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := ReadClassNames(dir); err != nil || !slices.Equal(names, []string{"B", "a", "b"}) {
		t.Error(names, err)
	}
}

func FuzzClassNames(f *testing.F) {
	f.Add([]byte(`{"id2label": {"0": "cat"}}`))
	f.Add([]byte("cat\ndog\n"))
	f.Fuzz(func(t *testing.T, b []byte) { reliability.Heap(t, len(b), func() { parseClassNames(b) }) })
}
