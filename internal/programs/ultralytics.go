package programs

import "fmt"

// ultralytics saves whole modules. Late versions save one module, ema. Its classifier scales pixels to 0 … 1, resizes the
// shorter edge, and crops the middle.
var _ = register(Program{
	Name:     "ultralytics",
	Keys:     []string{"train_args", "ema"},
	Files:    []string{"args.yaml", "results.csv"},
	Author:   "Ultralytics",
	Settings: []string{"args.yaml"},
	Classes:  []string{"ema/names", "model/names"},
	Figures:  []Figures{{File: "results.csv", Of: []string{"metrics/*", "val/*"}}},
	Preprocess: func(v map[string]any) (words string, unsaid []string) {
		n := numbersOf(v["imgsz"]) // or height and width in the metadata of its graphs
		if v["task"] != "classify" || len(n) == 0 || len(n) > 2 {
			return "", nil
		}
		return fmt.Sprintf("input-size=%s crop-pct=1 interpolation=bilinear mean=0 std=1", joined(n, "x")), nil
	},
})
