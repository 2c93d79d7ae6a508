package augment

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// ReadFile reads a pipeline from a file. A name that ends in .yaml or .yml means the args.yaml that timm's train.py
// writes next to its checkpoints. Other files contain text for [Parse].
func ReadFile(path string) (Pipeline, error) {
	if err := file.Input(path); err != nil {
		return Pipeline{}, err
	}
	f, _, err := file.Regular(path)
	if err != nil {
		return Pipeline{}, file.Error(path, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return Pipeline{}, file.Error(path, err)
	}
	var p Pipeline
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		p, err = parseTimm(text)
	default:
		p, err = Parse(string(text))
	}
	if err != nil {
		return Pipeline{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// timmArgs are the arguments of timm's train.py that change pictures. Other arguments are ignored.
type timmArgs struct {
	NoAug         bool      `yaml:"no_aug"`
	TrainCropMode string    `yaml:"train_crop_mode"`
	Scale         []float64 `yaml:"scale"`
	Ratio         []float64 `yaml:"ratio"`
	HFlip         float64   `yaml:"hflip"`
	VFlip         float64   `yaml:"vflip"`
	ColorJitter   numbers   `yaml:"color_jitter"`
	Interpolation string    `yaml:"interpolation"` // of the evaluation
	TrainFilter   string    `yaml:"train_interpolation"`
	ReProb        float64   `yaml:"reprob"`
	ReMode        string    `yaml:"remode"`
	ReCount       int       `yaml:"recount"`
	GreyscaleProb float64   `yaml:"grayscale_prob"`
	ImgSize       int       `yaml:"img_size"`
	InputSize     []int     `yaml:"input_size"`
	Mean          []float64 `yaml:"mean"`
	Std           []float64 `yaml:"std"`
}

// timmDefaults returns the defaults of train.py in timm 1.0.31.
func timmDefaults() timmArgs {
	return timmArgs{
		Scale: cropScale[:], Ratio: cropRatio[:], HFlip: 0.5, ColorJitter: numbers{0.4},
		TrainFilter: "random", ReMode: "pixel", ReCount: 1,
	}
}

// numbers is a number or a list of numbers.
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

// timmRefused lists arguments that change pictures in a way that is not supported, and what they do.
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

// timmKeys lists some keys that every args.yaml has.
var timmKeys = []string{"hflip", "scale", "reprob", "train_interpolation", "no_aug", "color_jitter"}

func parseTimm(text []byte) (Pipeline, error) {
	if len(text) > maxText {
		return Pipeline{}, fmt.Errorf("want at most %d bytes", maxText)
	}
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return Pipeline{}, err
	}
	if !slices.ContainsFunc(timmKeys, func(key string) bool { _, has := all[key]; return has }) {
		return Pipeline{}, fmt.Errorf("none of %s, want the args.yaml of timm's train.py", strings.Join(timmKeys, ", "))
	}
	a := timmDefaults()
	if err := yaml.Unmarshal(text, &a); err != nil {
		return Pipeline{}, err
	}
	for _, r := range timmRefused {
		// With no_aug, train.py still mixes pictures and batches.
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

// off reports whether the value of a key switches nothing on.
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

// pipeline follows transforms_imagenet_train and transforms_noaug_train of timm's data/transforms_factory.py, and the
// erasing of data/loader.py. Parse checks the numbers.
func (a timmArgs) pipeline() (Pipeline, error) {
	size := unless(a.ImgSize, 0, fmt.Sprintf("(%d, %d)", a.ImgSize, a.ImgSize)) // the network's own size if both are missing
	if n := a.InputSize; len(n) == 3 {
		size = fmt.Sprintf("(%d, %d)", n[1], n[2])
	} else if n != nil {
		return Pipeline{}, fmt.Errorf("input_size is %v, want channels, height and width", n)
	}
	norm := ""
	if a.Mean != nil && a.Std != nil {
		norm = textOf(&normalize{a.Mean, a.Std})
	}
	switch {
	case a.NoAug:
		// The evaluation's filter, which only "interpolation" contains.
		if _, err := picture.ParseFilter(a.Interpolation); err != nil {
			return Pipeline{}, fmt.Errorf("no_aug: pictures were resized with the network's own filter, and %w: give Resize(interpolation='...') as text", err)
		}
		return Parse(call("Resize", size, "interpolation='"+a.Interpolation+"'") + "\n" + norm)
	case a.TrainCropMode != "" && a.TrainCropMode != "rrc":
		return Pipeline{}, fmt.Errorf("train_crop_mode is %q, and only rrc is supported: %s", a.TrainCropMode, advice)
	}
	jitter := "" // one number means brightness, contrast and saturation without hue
	if j := a.ColorJitter; len(j) == 1 {
		jitter = call("ColorJitter", numberList([]float64{j[0], j[0], j[0]}))
	} else if j != nil {
		jitter = call("ColorJitter", numberList(j))
	}
	return Parse(strings.Join([]string{
		call("RandomResizedCropAndInterpolation", size, "scale="+tuple(a.Scale), "ratio="+tuple(a.Ratio), "interpolation='"+cmp.Or(a.TrainFilter, a.Interpolation)+"'"),
		unless(a.HFlip, 0, "RandomHorizontalFlip(p="+number(a.HFlip)+")"),
		unless(a.VFlip, 0, "RandomVerticalFlip(p="+number(a.VFlip)+")"),
		jitter,
		unless(a.GreyscaleProb, 0, "RandomGrayscale(p="+number(a.GreyscaleProb)+")"),
		norm,
		unless(a.ReProb, 0, fmt.Sprintf("RandomErasing(p=%s, mode='%s', count=%d)", number(a.ReProb), strings.ToLower(a.ReMode), a.ReCount)),
	}, "\n"))
}
