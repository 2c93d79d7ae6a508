package preprocess

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// maxConfig bounds the size of configurations in bytes. A timm config.json may list the 22,000 classes of ImageNet,
// which takes 0.5 MB.
const maxConfig = 16 << 20

// ReadFile reads the preprocessing of a model from the file that belongs to it. The file is a Hugging Face
// preprocessor_config.json, a timm config.json with pretrained_cfg, the result of timm's resolve_data_config as JSON,
// or settings from a model card. An unknown key that may change pixels is an error.
func ReadFile(path string) (Settings, error) {
	b, err := file.Read(path, maxConfig)
	if err != nil {
		return Settings{}, err
	}
	s, err := parse(b)
	if err != nil {
		return Settings{}, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func parse(b []byte) (Settings, error) {
	var c config
	if err := json.Unmarshal(b, &c); err != nil {
		return Settings{}, err
	}
	has := func(key string) bool { return string(c[key]) != "" && string(c[key]) != "null" }
	for _, inner := range []string{"pretrained_cfg", "image_processor"} { // of timm's config.json, of processor_config.json
		if has(inner) {
			var part config
			if err := c.get(inner, &part); err != nil {
				return Settings{}, err
			}
			c = part
		}
	}
	switch {
	case has("input_size") || has("interpolation") || has("crop_mode"):
		return c.timm()
	case has("do_resize") || has("do_normalize") || has("image_mean") || has("image_processor_type") || has("feature_extractor_type"):
		return c.huggingFace()
	}
	if s, err := Decode(b); err == nil {
		return s, nil
	}
	return Settings{}, errors.New("neither a Hugging Face preprocessor_config.json (do_resize, image_mean ...) nor a timm config " +
		"(input_size, interpolation ...), nor settings as " + setting.Line(setting.Inspect.String()) + " shows them (mean, std ...)")
}

// Decode reads settings from a model card; nil gives the zero value. They are checked when they are used.
func Decode(js []byte) (s Settings, err error) {
	if len(js) == 0 {
		return s, nil
	}
	d := json.NewDecoder(bytes.NewReader(js))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("preprocess: %w", err)
	}
	return s, nil
}

// config is a decoded JSON object.
type config map[string]json.RawMessage

// get decodes the value of a key. It leaves dst unchanged if the key is missing or null.
func (c config) get(key string, dst any) error {
	raw, ok := c[key]
	if !ok || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return fmt.Errorf("%s is %.60s: %w", key, raw, err)
	}
	return nil
}

// field is a key and the destination of its value.
type field struct {
	key string
	dst any
}

func (c config) getAll(fields ...field) error {
	for _, f := range fields {
		if err := c.get(f.key, f.dst); err != nil {
			return err
		}
	}
	return nil
}

// timm reads a timm data configuration. Defaults are those of timm/data/config.py.
func (c config) timm() (Settings, error) {
	size := [3]int{3, 224, 224}
	mode, filter, pct := string(Center), picture.Bicubic, 0.875
	p := Settings{Mean: slices.Clone(imagenetMean), Std: slices.Clone(imagenetStd)}
	err := c.getAll(field{"input_size", &size}, field{"crop_mode", &mode}, field{"interpolation", &filter},
		field{"crop_pct", &pct}, field{"mean", &p.Mean}, field{"std", &p.Std})
	if err != nil {
		return p, err
	}
	switch size[0] {
	case 1:
		p.Channels = "grey"
	case 3:
		p.Channels = "rgb"
	default:
		return p, fmt.Errorf("input_size has %d channels, want 1 or 3", size[0])
	}
	p.Image = Transform{InputSize: [2]int{size[1], size[2]}, CropPct: pct, Interpolation: filter}
	p.Image.CropMode, err = ParseCropMode(mode)
	if err == nil && p.Image.CropMode == CropNone {
		err = fmt.Errorf("crop_mode %q, want center or squash", mode)
	}
	return p, err
}

// hfSize is a size in a Hugging Face configuration, which is a number or an object.
type hfSize struct{ number, short, height, width int }

func (s *hfSize) UnmarshalJSON(b []byte) error {
	*s = hfSize{}
	if json.Unmarshal(b, &s.number) == nil {
		return positive(s.number)
	}
	var object map[string]*int
	if err := json.Unmarshal(b, &object); err != nil {
		return errors.New("want a number, or an object with shortest_edge or with height and width")
	}
	for key, v := range object {
		dst, ok := map[string]*int{"shortest_edge": &s.short, "height": &s.height, "width": &s.width}[key]
		switch {
		case v == nil:
		case !ok:
			return fmt.Errorf("%s is not supported, want shortest_edge, or height and width", key)
		default:
			*dst = *v
		}
	}
	if s.short != 0 && s.height == 0 && s.width == 0 {
		return positive(s.short)
	}
	if s.short != 0 {
		return errors.New("want either shortest_edge, or height and width")
	}
	return errors.Join(positive(s.height), positive(s.width))
}

func positive(n int) error {
	if n < 1 || n > picture.MaxSide {
		return fmt.Errorf("want numbers from 1 to %d", picture.MaxSide)
	}
	return nil
}

// resolve interprets a bare number as a square or as the short side.
func (s hfSize) resolve(square bool) hfSize {
	switch {
	case s.number == 0:
		return s
	case square:
		return hfSize{height: s.number, width: s.number}
	}
	return hfSize{short: s.number}
}

// hfProcessor is one kind of image processor: its defaults and its special ways to resize.
type hfProcessor struct {
	size       hfSize
	square     bool // a bare number means a square, not the short side
	resample   int
	crop       int // crop_size
	centerCrop bool
	mean, std  []float64
	raw        bool // never normalises, whatever do_normalize says
	bgr        bool
	convNext   bool // resizes and crops by crop_pct below 384, squashes above
	levit      bool // resizes the short side to 256/224 of the size
}

// hfProcessors holds the classifiers' processors of transformers 5.23, by name without ImageProcessor or
// FeatureExtractor. Other processors do more than their configuration says, so they are refused.
var hfProcessors = map[string]hfProcessor{
	"Beit":     {size: hfSize{height: 224, width: 224}, square: true, resample: 3, crop: 224, mean: halves, std: halves},
	"Bit":      {size: hfSize{short: 224}, resample: 3, crop: 224, centerCrop: true, mean: clipMean, std: clipStd},
	"CLIP":     {size: hfSize{short: 224}, resample: 3, crop: 224, centerCrop: true, mean: clipMean, std: clipStd},
	"ConvNext": {size: hfSize{short: 384}, resample: 3, mean: halves, std: halves, convNext: true},
	"DeiT": {
		size:       hfSize{height: 256, width: 256},
		square:     true,
		resample:   3,
		crop:       224,
		centerCrop: true,
		mean:       halves,
		std:        halves,
	},
	"Levit":       {size: hfSize{short: 224}, resample: 3, crop: 224, centerCrop: true, mean: imagenetMean, std: imagenetStd, levit: true},
	"MobileNetV1": {size: hfSize{short: 256}, resample: 2, crop: 224, centerCrop: true, mean: halves, std: halves},
	"MobileNetV2": {size: hfSize{short: 256}, resample: 2, crop: 224, centerCrop: true, mean: halves, std: halves},
	"MobileViT":   {size: hfSize{short: 224}, resample: 3, crop: 256, centerCrop: true, raw: true, bgr: true},
	"Pvt":         {size: hfSize{height: 224, width: 224}, square: true, resample: 3, mean: imagenetMean, std: imagenetStd},
	"Siglip":      {size: hfSize{height: 224, width: 224}, resample: 3, mean: halves, std: halves},
	"ViT":         {size: hfSize{height: 224, width: 224}, square: true, resample: 2, mean: halves, std: halves},
}

// hfHarmless lists keys that change no pixel. Pictures always become RGB, whatever do_convert_rgb says.
var hfHarmless = []string{"image_processor_type", "feature_extractor_type", "processor_class", "auto_map", "do_convert_rgb",
	"model_input_names", "data_format", "input_data_format", "return_tensors", "device", "disable_grouping"}

// processor returns the kind of processor of the configuration.
func (c config) processor() (hfProcessor, error) {
	var name, old string
	if err := c.getAll(field{"image_processor_type", &name}, field{"feature_extractor_type", &old}); err != nil {
		return hfProcessor{}, err
	}
	if name == "" {
		name = old
	}
	short := name
	for _, end := range []string{"Pil", "Fast", "ImageProcessor", "FeatureExtractor"} {
		short = strings.TrimSuffix(short, end)
	}
	p, ok := hfProcessors[short]
	if ok {
		return p, nil
	}
	if name == "" {
		return p, errors.New("no image_processor_type: want one, since what the other keys mean depends on it")
	}
	known := slices.Sorted(maps.Keys(hfProcessors))
	return p, fmt.Errorf("image_processor_type %q is not supported, want that of %s", name, strings.Join(known, ", "))
}

// huggingFace reads a preprocessor_config.json. The results equal those of the processors that use Pillow and NumPy.
// The faster processors, which use torchvision, resize tensors and differ by up to 3 of 255 levels (bicubic).
func (c config) huggingFace() (Settings, error) {
	kind, err := c.processor()
	if err != nil {
		return Settings{}, err
	}
	resize, centerCrop, rescale, normalize, flip := true, kind.centerCrop, true, true, kind.bgr
	size, cropSize := kind.size, hfSize{number: kind.crop}
	resample, pct, factor := kind.resample, 0.875, 1.0/255
	mean, std, reduce := slices.Clone(kind.mean), slices.Clone(kind.std), false
	fields := []field{{"do_resize", &resize}, {"size", &size}, {"resample", &resample}, {"default_to_square", &kind.square},
		{"do_center_crop", &centerCrop}, {"crop_size", &cropSize}, {"do_rescale", &rescale}, {"rescale_factor", &factor},
		{"do_normalize", &normalize}, {"image_mean", &mean}, {"image_std", &std}, {"do_flip_channel_order", &flip},
		{"reduce_labels", &reduce}, {"do_reduce_labels", &reduce}}
	if kind.convNext {
		fields = append(fields, field{"crop_pct", &pct})
	}
	if err := c.refuseUnknown(fields); err != nil {
		return Settings{}, err
	}
	if err := c.getAll(fields...); err != nil {
		return Settings{}, err
	}
	if resample < 0 || resample >= len(picture.PillowFilters) {
		return Settings{}, fmt.Errorf("resample %d, want Pillow's 0 to %d", resample, len(picture.PillowFilters)-1)
	}
	if !resize && centerCrop {
		return Settings{}, errors.New("do_center_crop without do_resize is not supported")
	}

	p := Settings{
		Channels:     "rgb",
		Scale:        1,
		ReduceLabels: reduce,
		Image:        Transform{Interpolation: picture.PillowFilters[resample], CropRoundsDown: true},
	}
	if flip {
		p.Channels = "bgr"
	}
	if rescale {
		p.Scale = factor
	}
	if normalize && !kind.raw {
		p.Mean, p.Std = mean, std
	}
	if resize {
		size := size.resolve(kind.square)
		crop := cropSize.resolve(true)
		if !centerCrop {
			crop = hfSize{}
		}
		if p.Image, err = kind.transform(p.Image, size, crop, pct); err != nil {
			return Settings{}, err
		}
	} else {
		p.Image = Transform{}
	}
	_, _, err = p.InUnits()
	return p, err
}

// refuseUnknown returns an error for keys that may change pixels, unless they are in read or switched off.
func (c config) refuseUnknown(read []field) error {
	var unknown []string
	for key, raw := range c {
		off := string(raw) == "null" || string(raw) == "false"
		isRead := slices.ContainsFunc(read, func(f field) bool { return f.key == key })
		if !off && !isRead && !strings.HasPrefix(key, "_") && !slices.Contains(hfHarmless, key) {
			unknown = append(unknown, fmt.Sprintf("%s (%.40s)", key, raw))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("not supported: %s", strings.Join(unknown, ", "))
}

// transform sets the fields of t for a resize and, unless crop is zero, a crop.
func (k hfProcessor) transform(t Transform, size, crop hfSize, pct float64) (Transform, error) {
	short := size.short
	switch {
	case k.convNext && short == 0:
		return t, errors.New("size has height and width, want shortest_edge")
	case k.convNext && !(pct > 0 && pct <= 1):
		return t, fmt.Errorf("crop_pct %v, want a number above 0, at most 1", pct)
	case k.convNext && crop != hfSize{}:
		return t, errors.New("do_center_crop together with crop_pct is not supported")
	case k.convNext && short < 384:
		n := int(float64(short) / pct)
		t.CropMode, t.ResizeSize, t.InputSize = Center, [2]int{n, n}, [2]int{short, short}
		return t, nil
	case k.convNext:
		t.CropMode, t.ResizeSize, t.InputSize = Squash, [2]int{short, short}, [2]int{short, short}
		return t, nil
	case short == 0:
		t.CropMode, t.ResizeSize = Squash, [2]int{size.height, size.width}
		t.InputSize = t.ResizeSize
	case crop == hfSize{}:
		return t, errors.New("size has shortest_edge without do_center_crop, so that sizes differ from image to image, want do_center_crop")
	default:
		if k.levit {
			short = int(256.0 / 224 * float64(short))
		}
		t.CropMode, t.ResizeSize = Center, [2]int{short, short}
	}
	if crop.short != 0 {
		return t, errors.New("crop_size has shortest_edge, want height and width")
	}
	if crop != (hfSize{}) {
		t.InputSize = [2]int{crop.height, crop.width}
	}
	return t, nil
}
