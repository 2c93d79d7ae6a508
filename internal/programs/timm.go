package programs

import (
	"fmt"
	"slices"
	"strings"
)

// timm is its train.py, which writes its arguments, and a row of figures an epoch.
var _ = register(Program{
	Name:      "timm",
	Keys:      []string{"arch", "args/model_kwargs"},
	Files:     []string{"args.yaml", "summary.csv"},
	Settings:  []string{"args.yaml"},
	Figures:   []Figures{{File: "summary.csv", Of: []string{"eval_loss", "eval_top1", "eval_top5"}}},
	OfAverage: "state_dict_ema",
	Preprocess: func(v map[string]any) (words string, unsaid []string) {
		if args, ok := v["args"].(map[string]any); ok { // in a checkpoint
			v = args
		}
		// What is not given is the network's own configuration, which is in no file of the run, as the crop of 0.95 of many networks.
		mean, std, crop := numbersOf(v["mean"]), numbersOf(v["std"]), numbersOf(v["crop_pct"])
		how, _ := v["interpolation"].(string)
		size := numbersOf(v["img_size"])
		if given := numbersOf(v["input_size"]); len(given) == 3 { // channels, height, width
			size = given[1:]
		}
		for key, given := range map[string]bool{
			"mean":          len(mean) > 0,
			"std":           len(std) > 0,
			"img_size":      len(size) > 0,
			"crop_pct":      len(crop) == 1,
			"interpolation": how != "",
		} {
			if !given {
				unsaid = append(unsaid, key)
			}
		}
		if unsaid != nil {
			if name, _ := v["model"].(string); name == "" {
				return "", nil // of another program
			}
			slices.Sort(unsaid)
			return "", unsaid
		}
		return fmt.Sprintf("input-size=%s mean=%s std=%s crop-pct=%v interpolation=%s",
			joined(size, "x"), joined(mean, ","), joined(std, ","), crop[0], how), nil
	},
	Resolve: func(file string) string {
		args := fmt.Sprintf("import torch; a = vars(torch.load(%q, weights_only=False)[\"args\"])", file)
		if strings.HasSuffix(file, ".yaml") {
			args = fmt.Sprintf("import yaml; a = yaml.safe_load(open(%q))", file)
		}
		return args + `; import json, timm; c = timm.data.resolve_data_config(a, model=timm.create_model(a["model"])); ` +
			`json.dump(c, open("preprocess.json", "w"))`
	},
})

func joined(numbers []float64, by string) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, by)
}
