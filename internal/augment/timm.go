package augment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// ReadFile reads a pipeline from a file: the args.yaml that timm's train.py
// writes beside its checkpoints, if the name ends in .yaml or .yml, else text for
// [Parse].
func ReadFile(path string) (Pipeline, error) {
	f, err := os.Open(path)
	if err != nil {
		if pe := (*os.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		return Pipeline{}, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return Pipeline{}, fmt.Errorf("%s: %w", path, err)
	}
	parse := func() (Pipeline, error) { return Parse(string(text)) }
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		parse = func() (Pipeline, error) { return parseTimm(text) }
	}
	p, err := parse()
	if err != nil {
		return Pipeline{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// timmArgs are the arguments of timm's train.py that change pictures. The other
// ones are read over.
type timmArgs struct {
	NoAug         bool      `yaml:"no_aug"`
	TrainCropMode string    `yaml:"train_crop_mode"`
	Scale         []float64 `yaml:"scale"`
	Ratio         []float64 `yaml:"ratio"`
	HFlip         float64   `yaml:"hflip"`
	VFlip         float64   `yaml:"vflip"`
	ColorJitter   *numbers  `yaml:"color_jitter"`
	Interpolation string    `yaml:"interpolation"` // the evaluation's
	TrainFilter   string    `yaml:"train_interpolation"`
	ReProb        float64   `yaml:"reprob"`
	ReMode        string    `yaml:"remode"`
	ReCount       int       `yaml:"recount"`
	GreyscaleProb *float64  `yaml:"grayscale_prob"`
	ImgSize       *int      `yaml:"img_size"`
	InputSize     []int     `yaml:"input_size"`
	Mean          []float64 `yaml:"mean"`
	Std           []float64 `yaml:"std"`
}

// timmDefaults are those of train.py in timm 1.0.31.
func timmDefaults() timmArgs {
	return timmArgs{
		Scale: cropScale[:], Ratio: cropRatio[:], HFlip: 0.5, ColorJitter: &numbers{0.4},
		TrainFilter: "random", ReMode: "pixel", ReCount: 1,
	}
}

// numbers is a number or a list of them.
type numbers []float64

func (n *numbers) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.SequenceNode {
		return node.Decode((*[]float64)(n))
	}
	var x float64
	if err := node.Decode(&x); err != nil {
		return err
	}
	*n = numbers{x}
	return nil
}

// timmRefused are arguments whose work on pictures is not repeated here, and
// what they do.
var timmRefused = []struct{ key, does string }{
	{"aa", "AutoAugment or RandAugment"},
	{"mixup", "a mixture of two pictures"},
	{"cutmix", "a mixture of two pictures"},
	{"cutmix_minmax", "a mixture of two pictures"},
	{"gaussian_blur_prob", "Gaussian blur"},
	{"color_jitter_prob", "colour jitter of some pictures only"},
	{"aug_splits", "several versions of a picture in a batch"},
	{"train_img_sizes", "pictures of several sizes"},
	{"naflex_loader", "pictures of several shapes"},
	{"tf_preprocessing", "TensorFlow's preprocessing"},
}

// timmKeys are some of the keys that every args.yaml has.
var timmKeys = []string{"hflip", "scale", "reprob", "train_interpolation", "no_aug", "color_jitter"}

func parseTimm(text []byte) (Pipeline, error) {
	if len(text) > maxText {
		return Pipeline{}, fmt.Errorf("want at most %d bytes", maxText)
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return Pipeline{}, err
	}
	known := false
	for _, key := range timmKeys {
		_, has := all[key]
		known = known || has
	}
	if !known {
		return Pipeline{}, fmt.Errorf("none of %s, want the args.yaml of timm's train.py", strings.Join(timmKeys, ", "))
	}
	a := timmDefaults()
	if err := yaml.Unmarshal(text, &a); err != nil {
		return Pipeline{}, err
	}
	for _, r := range timmRefused {
		// With no_aug only what mixes pictures or batches is still done.
		skipped := a.NoAug && (r.key == "aa" || r.key == "gaussian_blur_prob" || r.key == "color_jitter_prob")
		if v, ok := all[r.key]; ok && !off(v) && !skipped {
			return Pipeline{}, fmt.Errorf("%s is %v, %s: not supported, %s", r.key, v, r.does, advice)
		}
	}
	if v, ok := all["color_jitter"]; ok && v == nil {
		a.ColorJitter = nil
	}
	return a.pipeline()
}

// off says that the value of a key switches nothing on.
func off(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case int:
		return v == 0
	case float64:
		return v == 0
	case string:
		return v == "" || strings.EqualFold(v, "none")
	}
	return false
}

// pipeline is transforms_imagenet_train and transforms_noaug_train of timm's
// data/transforms_factory.py, and the erasing of data/loader.py. The numbers are
// checked by Parse, as those of any pipeline.
func (a timmArgs) pipeline() (Pipeline, error) {
	var words []string
	size, err := a.size()
	if err != nil {
		return Pipeline{}, err
	}
	switch {
	case a.NoAug:
		// The network's own filter, which only "interpolation" tells.
		f, err := picture.ParseFilter(a.Interpolation)
		if err != nil {
			return Pipeline{}, fmt.Errorf("no_aug: pictures were resized with the network's own filter, and %w: give Resize(interpolation='...') as text", err)
		}
		words = append(words, call("Resize", append(size, filterArgs(f)...)...))
	case a.TrainCropMode != "" && a.TrainCropMode != "rrc":
		return Pipeline{}, fmt.Errorf("train_crop_mode is %q, and only rrc is supported: %s", a.TrainCropMode, advice)
	default:
		if a.TrainFilter == "" {
			a.TrainFilter = a.Interpolation
		}
		words = append(words, call("RandomResizedCropAndInterpolation", append(size,
			"scale="+tuple(a.Scale), "ratio="+tuple(a.Ratio), "interpolation='"+a.TrainFilter+"'")...))
		words = append(words, a.changes()...)
	}
	if a.Mean != nil && a.Std != nil {
		words = append(words, call("Normalize", "mean="+tuple(a.Mean), "std="+tuple(a.Std)))
	}
	if a.ReProb != 0 && !a.NoAug {
		words = append(words, call("RandomErasing", "p="+number(a.ReProb), "mode='"+strings.ToLower(a.ReMode)+"'", fmt.Sprintf("count=%d", a.ReCount)))
	}
	return Parse(strings.Join(words, "\n"))
}

// changes are what follows the crop.
func (a timmArgs) changes() []string {
	var words []string
	if a.HFlip != 0 {
		words = append(words, call("RandomHorizontalFlip", "p="+number(a.HFlip)))
	}
	if a.VFlip != 0 {
		words = append(words, call("RandomVerticalFlip", "p="+number(a.VFlip)))
	}
	if a.ColorJitter != nil {
		j := *a.ColorJitter
		if len(j) == 1 { // brightness, contrast and saturation, no hue
			j = numbers{j[0], j[0], j[0]}
		}
		var in []string
		for _, v := range j {
			in = append(in, number(v))
		}
		words = append(words, call("ColorJitter", in...))
	}
	if a.GreyscaleProb != nil && *a.GreyscaleProb != 0 {
		words = append(words, call("RandomGrayscale", "p="+number(*a.GreyscaleProb)))
	}
	return words
}

// size returns the argument that says what size the network was trained with,
// unless that is its own.
func (a timmArgs) size() ([]string, error) {
	switch {
	case len(a.InputSize) == 3:
		return []string{fmt.Sprintf("(%d, %d)", a.InputSize[1], a.InputSize[2])}, nil
	case a.InputSize != nil:
		return nil, fmt.Errorf("input_size is %v, want channels, height and width", a.InputSize)
	case a.ImgSize != nil:
		return []string{fmt.Sprintf("(%d, %d)", *a.ImgSize, *a.ImgSize)}, nil
	}
	return nil, nil
}
