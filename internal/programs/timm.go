package programs

import (
	"fmt"
	"strings"
)

// timm is its train.py, which writes its arguments, and a row of figures an epoch.
var _ = register(Program{
	Name:     "timm",
	Keys:     []string{"arch", "args/model_kwargs"},
	Files:    []string{"args.yaml", "summary.csv"},
	Settings: []string{"args.yaml"},
	Figures:  []Figures{{File: "summary.csv", Of: []string{"eval_loss", "eval_top1", "eval_top5"}}},
	Preprocess: func(v map[string]any) string {
		// without them the network's own configuration counts, which is in no file of the run
		mean, std, size := numbersOf(v["mean"]), numbersOf(v["std"]), numbersOf(v["img_size"])
		if size == nil {
			if size = numbersOf(v["input_size"]); len(size) == 3 {
				size = size[1:]
			}
		}
		if len(mean) == 0 || len(std) == 0 || len(size) == 0 {
			return ""
		}
		words := fmt.Sprintf("input-size=%s mean=%s std=%s", joined(size, "x"), joined(mean, ","), joined(std, ","))
		if pct := numbersOf(v["crop_pct"]); len(pct) == 1 {
			words += fmt.Sprintf(" crop-pct=%v", pct[0])
		}
		if how, ok := v["interpolation"].(string); ok && how != "" {
			words += " interpolation=" + how
		}
		return words
	},
})

func joined(numbers []float64, by string) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, by)
}
