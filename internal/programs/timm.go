package programs

import (
	"fmt"
	"strings"
)

// timm is its train.py, which writes its arguments, and a row of figures an epoch.
var _ = register(Program{
	Name:      "timm",
	Keys:      []string{"arch", "args/model_kwargs"},
	Files:     []string{"args.yaml", "summary.csv"},
	Settings:  []string{"args.yaml"},
	Figures:   []Figures{{File: "summary.csv", Of: []string{"eval_loss", "eval_top1", "eval_top5"}}},
	OfAverage: "model_ema",
	Preprocess: func(v map[string]any) string {
		// What is not given is the network's own configuration, which is in no file of the run, as the crop of 0.95 of many networks.
		mean, std, crop := numbersOf(v["mean"]), numbersOf(v["std"]), numbersOf(v["crop_pct"])
		how, _ := v["interpolation"].(string)
		size := numbersOf(v["img_size"])
		if given := numbersOf(v["input_size"]); len(given) == 3 { // channels, height, width
			size = given[1:]
		}
		if len(mean) == 0 || len(std) == 0 || len(size) == 0 || len(crop) != 1 || how == "" {
			return ""
		}
		return fmt.Sprintf("input-size=%s mean=%s std=%s crop-pct=%v interpolation=%s",
			joined(size, "x"), joined(mean, ","), joined(std, ","), crop[0], how)
	},
})

func joined(numbers []float64, by string) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, by)
}
