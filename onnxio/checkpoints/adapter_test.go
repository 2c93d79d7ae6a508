package checkpoints

import "testing"

// The names in graphs and in adapter_model.safetensors are those of PEFT 0.21.
func TestSavedName(t *testing.T) {
	t.Parallel()
	for graph, file := range map[string]string{
		"m.layers.0.q_proj.lora_A.default.weight":                "m.layers.0.q_proj.lora_A.weight",
		"m.layers.0.q_proj.lora_B.my-adapter.bias":               "m.layers.0.q_proj.lora_B.bias",
		"m.layers.0.q_proj.lora_magnitude_vector.default.weight": "m.layers.0.q_proj.lora_magnitude_vector",
		"m.wte.lora_embedding_A.default":                         "m.wte.lora_embedding_A",
		"m.layers.0.k_proj.ia3_l.default":                        "m.layers.0.k_proj.ia3_l",
		"m.lm_head.modules_to_save.default.weight":               "m.lm_head.weight",
		"m.layers.0.q_proj.base_layer.weight":                    "m.layers.0.q_proj.base_layer.weight",
	} {
		if got := savedName(graph); got != file {
			t.Errorf("%s: %s, want %s", graph, got, file)
		}
	}
}
