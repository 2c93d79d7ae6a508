package hub

import "encoding/json"

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
