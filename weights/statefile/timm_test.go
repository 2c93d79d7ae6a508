package statefile

import (
	"encoding/json"
	"testing"
)

// Checkpoints of timm's train.py name their network and its arguments. Other programs that say "arch" name none.
func TestTimm(t *testing.T) {
	t.Parallel()
	args := func(kv ...string) string { return name("argparse", "Namespace") + ")\x81" + items(kv...) + "b" }
	timm := func(args string, more ...string) string {
		return items(append([]string{str("arch"), str("resnet18"), str("version"), num(2), str("state_dict"), items(str("w"), weight), str("args"), args}, more...)...)
	}
	deep := "]"
	for range 2000 {
		deep = "](" + deep + "e"
	}
	for what, tt := range map[string]struct{ root, want string }{
		"no arguments":  {timm(args(str("model_kwargs"), "}", str("gp"), "N", str("in_chans"), "N", str("lr"), num(3))), `{"Architecture":"resnet18","Args":{}}`},
		"arguments":     {timm(args(str("model_kwargs"), items(str("stem_width"), num(8), str("layers"), nums(1, 2), str("deep"), "\x88"), str("gp"), str("max"), str("in_chans"), num(1))), `{"Architecture":"resnet18","Args":{"deep":true,"global_pool":"max","in_chans":1,"layers":[1,2],"stem_width":8}}`},
		"another saver": {timm(args(str("model"), str("resnet18"))), "null"},
		"ImageNet":      {items(str("arch"), str("resnet18"), str("epoch"), num(2), str("state_dict"), items(str("w"), weight)), "null"},
		"a class":       {timm(args(str("model_kwargs"), items(str("norm_layer"), name("torch.nn", "LayerNorm")))), "null"},
		"endless":       {timm(args(str("model_kwargs"), items(str("x"), deep))), "null"},
		"a number":      {items(str("arch"), num(3), str("version"), num(2), str("state_dict"), items(str("w"), weight)), "null"},
		"the weights":   {items(str("w"), weight), "null"},
	} {
		f, err := Parse("f.pt", zipped(tt.root))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := json.Marshal(f.Timm); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", what, got, err, tt.want)
		}
	}
}
