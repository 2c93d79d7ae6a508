package hub

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// README returns README.md.
func (c Card) README() []byte {
	var b strings.Builder
	c.frontMatter(&b)
	fmt.Fprintf(&b, "\n# %s\n\n%s Made by %s.\n\n## Use\n\n", strings.NewReplacer("\n", " ").Replace(c.Name), c.What, c.Producer)
	fmt.Fprintf(&b, "`model.onnx` takes %s, and gives %s.\n", c.Takes, c.Gives)
	c.usage(&b)
	if c.Calibration != "" {
		fmt.Fprintf(&b, "\nCalibration: %s\n", c.Calibration)
	}
	if c.Guarantee != "" {
		fmt.Fprintf(&b, "\n## Guarantee\n\n- %s.\n\nThe model decides in `%s`. The guarantee is for examples from the source of these. "+
			"For "+
			"other data nothing is guaranteed.\n", strings.ReplaceAll(c.Guarantee, "; ", ".\n- "), strings.Join(c.Decides, "`, `"))
	}
	c.figures(&b)
	b.WriteString("\n## Limits\n\n" + bullets(c.Limits))
	return []byte(b.String())
}

func (c Card) frontMatter(b *strings.Builder) {
	fmt.Fprintf(b, "---\nlibrary_name: %s\n", c.Library)
	pipeline := Pipeline(c.Task, c.Inputs, c.Positions)
	if pipeline != "" {
		fmt.Fprintf(b, "pipeline_tag: %s\n", pipeline)
	}
	tags := []string{"swagwrap", "swa", "onnx"}
	if c.Members > 1 {
		tags = append(tags, "swag", "ensemble", "uncertainty")
	}
	b.WriteString("tags:\n")
	for _, t := range tags {
		fmt.Fprintf(b, "- %s\n", t)
	}
	if c.Figures != nil {
		if pipeline == "" {
			pipeline = "other"
		}
		fmt.Fprintf(b, "model-index:\n- name: %s\n  results:\n  - task:\n      type: %s\n      name: %s\n    dataset:\n      type: %s\n "+
			"     name: %s\n    metrics:\n",
			quoted(c.Name), pipeline, quoted(c.Task), quoted(c.Figures.Data), quoted(c.Figures.Data))
		for _, m := range c.Figures.Metrics {
			fmt.Fprintf(b, "    - type: %s\n      value: %v\n      name: %s\n", quoted(m.Type), m.Value, quoted(m.label()))
			if m.Interval != nil {
				fmt.Fprintf(b, "      args:\n        confidence_level: 0.95\n        low: %v\n        high: %v\n", m.Interval.Low,
					m.Interval.High)
			}
		}
	}
	b.WriteString("---\n")
}

func (c Card) usage(b *strings.Builder) {
	b.WriteString("\n```python\nimport onnxruntime\n\nsession = onnxruntime.InferenceSession(\"model.onnx\")\noutputs = " +
		"session.run(None, {session.get_inputs()[0].name: x})\n```\n")
	if c.Turned {
		b.WriteString("\nPictures are turned as their Exif orientation says, as by Hugging Face's datasets and " +
			"`PIL.ImageOps.exif_transpose`.\n")
	}
	switch c.Preprocess {
	case "":
	case "transformers":
		b.WriteString("\nFor pictures, `x = AutoImageProcessor.from_pretrained(FOLDER, backend=\"pil\")(pictures, " +
			"return_tensors=\"np\")[\"pixel_values\"]`, of transformers.\n")
	case "timm":
		b.WriteString("\n`preprocessor_config.json` has timm's words: `timm.data.create_transform(**config, is_training=False)`.\n")
	default:
		fmt.Fprintf(b, "\n`preprocessor_config.json` has the words of `%s`, because transformers and timm have none for it.\n",
			setting.Fit.With(setting.Preprocess.String()))
	}
	if c.Weights != "" {
		fmt.Fprintf(b, "\n`%s` has the same weights for PyTorch, under the names of the checkpoints.\n", c.Weights)
		if c.Library == "timm" {
			b.WriteString("\n`timm.create_model(\"local-dir:FOLDER\", pretrained=True)` loads it, and `\"hf-hub:USER/NAME\"` from the " +
				"Hub.\n")
		}
		// nothing in a state_dict names its architecture
		if c.Library == "onnx" && Pipeline(c.Task, c.Inputs, c.Positions) == "image-classification" {
			fmt.Fprintf(b, "\nA network of timm loads with `timm.create_model(ARCHITECTURE, checkpoint_path=\"%s\")`. To load it from "+
				"the Hub, add `\"architecture\": \"NAME\"` and `\"num_classes\": N` to `config.json`.\n", c.Weights)
		}
	}
}

func (c Card) figures(b *strings.Builder) {
	b.WriteString("\n## Figures\n\n")
	if c.Figures == nil {
		fmt.Fprintf(b, "None were given. `%s` measures them.\n", setting.Compare.With(setting.JSON.String()))
		return
	}
	fmt.Fprintf(b, "Measured on %d test examples (%s)", c.Figures.Examples, c.Figures.Data)
	if c.Figures.Validation > 0 {
		fmt.Fprintf(b, "; %d validation examples chose temperature and scale", c.Figures.Validation)
	}
	b.WriteString(".\n\n| metric | value | 95 % interval |\n|---|--:|---|\n")
	for _, m := range c.Figures.Metrics {
		interval := "not measured"
		if m.Interval != nil {
			interval = short(m.Interval.Low) + " to " + short(m.Interval.High)
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", m.Name, short(m.Value), interval)
	}
	b.WriteString("\nThe intervals are for new test examples, with these weights.\n")
}

func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func (m Metric) label() string {
	if m.Interval == nil {
		return m.Name
	}
	return fmt.Sprintf("%s [95 %%: %s to %s]", m.Name, short(m.Interval.Low), short(m.Interval.High))
}
