package main

import (
	"slices"
	"strings"
)

// flagValues are values of flags: those that fit most scenes, and behind "‖" borderline and wrong ones. Values are separated
// by "|". A key may begin with a command. A scene's own values go before these. Flags without a value are not here.
var flagValues = map[string]string{
	"allow":               "‖folded|pipe|x",
	"fit allow":           "folded‖pipe",
	"score allow":         "pipe‖folded",
	"arrays":              "auto|pixels|seen‖x",
	"at":                  "network‖original|x",
	"averages":            "ask|keep|drop‖x",
	"augment":             "‖none|Bogus()|RandomCrop(99)|RandomCrop(4, padding=1)|mine/x.txt|missing.txt",
	"batch-size":          "1|2|3|7|128‖0|-1|1000000|x",
	"bn":                  "auto|keep|recompute‖x",
	"adapt":               "‖none|blocks=64|blocks=9|blocks=x|classes/train.npz|table/test.csv|missing.npz|mine/x.npz|classes/p.safetensors",
	"adapt-weight":        "0.2|1‖0|0.1|-1|nan|2|x",
	"bn-data":             "‖classes/train.npz|pixels/train.npz|table/test.csv|mine/x.npz|mine|missing.npz|classes/p.safetensors|words/text.txt",
	"bn-samples":          "5|4|50%|all|auto|ordered‖1|0|200%|x|1000",
	"card":                "‖classes/card.json|words/card.json|mine/x.json|missing.json|classes/names.txt",
	"calibration":         "‖classes/test.npz|words/text.txt|mine/x.npz|missing.npz",
	"check":               "‖classes/test.npz|words/text.txt|mine/x.npz|mine",
	"checkpoint":          "‖classes/1.onnx|table/1.onnx|mine/x.onnx|classes",
	"checkpoints":         "‖out|classes|mine|missing|mine/x.txt",
	"class-axis":          "‖1|-1|0|2|5|-3",
	"class-names":         "‖mine/x.txt|classes/names.txt|out|missing|words/names.txt",
	"columns":             "‖x|age|nosuch,age|x=|ids=ids|*|input=a,b",
	"deviations":          "running|final|reference‖x",
	"device":              "‖0|1|-1",
	"hub":                 "out",
	"web":                 "out",
	"figures":             "‖mine/x.json|missing.json",
	"dtype":               "f32|bf16|f16‖x|f64",
	"ensemble":            "‖classes/e.safetensors|classes/p.safetensors|mine/x.safetensors|old/x.onnx",
	"epochs":              "2|1,2‖0|99|2,1|x|3",
	"expect":              "‖accuracy=0.5|accuracy=10% loss=2.3 n=3|rmse=1|x|accuracy=2|n=5|loss=0|accuracy",
	"expect-only":         "fail|warn‖x",
	"extend":              "‖classes/p.safetensors|classes/e.safetensors|mine/x.safetensors|missing",
	"features":            "none‖nosuch|input",
	"prepare labels":      "y",
	"file-order":          "text|number|given‖x",
	"folds":               "2|5‖1|0|10|11|99",
	"groups":              `‖unit=folder|report=folder:2|report=folder|unit=(|x|unit=(a)|unit=table/test.csv:site|report=mine/x.csv:a|unit=([0-9]) report=folder|unit=([0-9]) unit=folder`,
	"ignore-index":        "‖255|0|-1|9999999",
	"iterates":            "‖X|X=missing/*.onnx|X=classes/1.onnx|=classes/*.onnx|X=mine/*|SWA=classes/*.onnx",
	"key":                 "probs|probabilities‖nosuch|labels|images",
	"label-column":        "‖label|target|x|label,class",
	"path-column":         "‖path|x",
	"labels-as":           "auto|names‖numbers|x",
	"labels":              "‖none|missing.npy|classes/labels.npy|regression/targets.npy|table/labels.npy|pixels/masks|mine/x.txt|val=classes/labels.npy|mine",
	"list labels":         "none‖mine/x.txt|val=none",
	"max-members":         "4|2‖1|0|-5|3",
	"mean":                "‖t^4|t^0|t^x|classes/2.onnx|classes/p.safetensors|mine/x.onnx|ema=classes/2.onnx",
	"member":              "0|1‖99|-2|x",
	"data":                "‖classes/test.npz|table/test.csv|words/text.txt|mine/x.npz|missing.npz",
	"draws":               "antithetic|orthogonal|independent‖x",
	"members":             "2|3‖1|0|-1|auto|x",
	"export members":      "0|0-1|0,2‖9|2-1|1,1|x|-|",
	"sweep members":       "2|3|auto‖0|x",
	"coverage":            "90%|0.5|99.9%|size=1.5‖0|1|100%|-1|x|nan|size=0|size=x|size=nan",
	"set":                 "lac|aps|raps‖x",
	"by":                  "class|folder|(.)‖x|(|folder:0|missing.csv:site",
	"memory":              "100M|1G|64M‖1|1K|0|x|9999999T",
	"sample method":       "swag|swa|swag-diag|last|iterates‖x",
	"calibrate method":    "temperature|vector|none‖x|platt|noise|variance|isotonic",
	"methods":             "sgd|swa,swag|sgd,sgd-temp,swa,swa-temp,swag,swag-temp|sgd-ensemble,swag-diag‖all|x|swa-laplace|sgd,sgd|deep-sgd,multiswag",
	"metrics":             "main|all‖x",
	"next-labels":         "2|5‖0|-1|x|1000000",
	"noise-std":           "‖1|0|-1|x|1e300",
	"on-error":            "fail|skip‖x",
	"last":                "1|2|5‖0|-1|x",
	"order":               "natural|given‖x",
	"ort-lib":             "ort.so‖mine/x.txt|missing.so|mine",
	"output-name":         "‖logits|nosuch|input",
	"pad":                 "‖0|ids=0|ids=x|mask=1|ids=0,mask=0",
	"parity":              "on|off‖x",
	"part":                "0/2|1/2|0/1|2/3‖2/2|auto/2|x|0/0|0/1000000000000",
	"points":              "3|5‖1|2|0|-1",
	"posterior":           "‖classes/p.safetensors|classes/p1.safetensors|classes/e.safetensors|missing",
	"precision":           "f32|auto‖bf16|bf16,measured|f16|x",
	"preprocess":          "‖none|imagenet|mean=0.5|mean=x|input-size=0|input-size=2|mine/x.txt|std=0|scale=2|bogus=1",
	"provider":            "cpu‖auto|openvino|webgpu|cuda|x",
	"quantize":            "int8‖x|int4",
	"runtime":             "‖x|openvino",
	"rank":                "0|1|2‖-1|99|x",
	"sweep rank":          "0|1|0,1‖-1|99|x|0.5",
	"reference":           "‖mine/x.npz|classes/test.npz|missing.npz|mine",
	"role":                "‖*=parameter|*=buffer|nosuch=parameter|x|fc.bias=buffer|fc.*=statistic",
	"samples":             "5|8‖0|-1|1|999",
	"scale":               "0|0.5|1‖-1|nan|inf|x|1e30",
	"sweep scale":         "0|0.5|0,1‖-1|nan|x|,|1e30",
	"scores":              "‖logits|probabilities|log-probabilities|x",
	"seed":                "1|2|18446744073709551615‖-1|x",
	"settings":            "‖classes/settings.json|classes/card.json|mine/x.json|missing.json",
	"shares":              "estimate‖mine/x.json|classes/names.txt|missing.json|mine/x.csv|classes/rows.npz",
	"shift":               "‖common|x|gaussian_noise|gaussian_noise severities=9|each=1|drop_tokens severities=1|all examples=1",
	"state":               "‖none|h0=hn|h0|a=b,c=d|x=logits",
	"state-dict":          "‖ema|model|x",
	"storage":             "f32|int8|external|int8,external‖x|int4|external,external",
	"targets":             "‖head=none|head=variance|head=square|mean=1|means/test.npz head=none|mine/x.npz|head=none mean=1,2 std=1",
	"task":                "‖classes|binary|labels|regression|next-token|none|auto|x",
	"calibrate task":      "auto‖classes|labels|regression|next-token|x",
	"temperature":         "1|1.5‖0|-1|nan|inf|0.001|1e300",
	"template":            "‖classes/1.onnx|pixels/model.onnx|mine/x.onnx|pixels/model.onnx=classes/1.onnx|missing.onnx|pixels/epoch-7.pt",
	"test":                "‖classes/rows.npz|regression/rows.csv|mine/x.csv|missing.csv|classes/test.npz",
	"text":                "‖rows=2|bptt=5|rows=0|window=4 stride=9|x|vocabulary=mine/x.txt|tokenizer=mine/x.json|reset=never|rows=1000",
	"theta0":              "‖classes/1.onnx|table/1.onnx|mine/x.onnx",
	"threads":             "1|2|3‖0|-1|x|1000",
	"threshold":           "‖0.5|f1|youden|risk=0.5|risk=0|precision=2|x|0|1|-1|nan",
	"tile":                "‖8|0|4,4|x|8,2|1000",
	"topk":                "1|2‖0|-1|99",
	"unused":              "‖fc.*|nosuch|aux.weight,b|*",
	"val":                 "‖classes/test.npz|table/test.csv|words/text.txt|mine/x.npz|mine|missing.npz",
	"weight-decay":        "0|0.0005‖-1|nan|x|1e300",
	"weights":             "‖1|1,2|0,1|-1,2|x|nan,1",
	"within":              "0.5,50%|0.01,90%‖x|0,99%|1,1%|0.001",
	"completion argument": "bash|zsh|fish‖x|",
}

// outputFlags are the flags whose values are outputs, by their kind: a file with one of these extensions, or a folder.
var outputFlags = map[string][]string{
	"output": {".csv", ".jsonl", ".parquet", ".npz"}, "fit output": {".safetensors"}, "sample output": {".safetensors"}, "settle output": {".safetensors"}, "export output": {".onnx", ".pt", ".safetensors", ".npz"}, "list output": {".parquet"}, "prepare output": {".npy"},
	"calibrate output": {".json"}, "try output": {"/"}, "report": {".html"}, "plots": {"/"}, "save": {".npz"}, "calibrate save": {".csv", ".npz"}, "save-batch": {".npy"}, "montage": {".html"}, "maps": {"/"},
	"tune": {".json"}, "store": {"/"},
}

// lookup returns the entry of a flag in a table, with the command's own before the general one.
func lookup[V any](table map[string]V, command, flag string) (v V, ok bool) {
	if v, ok = table[command+" "+flag]; !ok {
		v, ok = table[flag]
	}
	return v, ok
}

// values returns the values that a flag may have: good ones, which fit the scene, and odd ones. known is false if nobody
// gave it any.
func (s *scene) values(command, flag string) (good, odd []string, known bool) {
	text, known := lookup(flagValues, command, flag)
	usual, wrong, _ := strings.Cut(text, "‖")
	if usual != "" {
		good = strings.Split(usual, "|")
	}
	if wrong != "" {
		odd = strings.Split(wrong, "|")
	}
	own, ok := lookup(s.good, command, flag)
	if derived := s.derived(command, flag); ok {
		good = own
	} else if derived != nil {
		good = derived
	}
	return good, odd, known
}

// derived are values that every scene has, under its own names.
func (s *scene) derived(command, flag string) []string {
	switch flag {
	case "bn-data":
		return s.training
	case "val", "check", "calibration":
		return slices.Concat(s.data, s.data, s.few)
	case "labels":
		if command == "compare" || command == "try" {
			return append(slices.Clone(s.labels), withPrefix("val=", s.labels)...)
		}
		return s.labels
	case "card":
		return []string{s.at("card.json")}
	case "checkpoint", "mean", "theta0":
		return s.networks()[:1]
	case "checkpoints":
		return []string{s.name}
	case "iterates":
		return withPrefix("X=", s.networks()[:1])
	case "extend", "posterior":
		return []string{s.at("p.safetensors")}
	case "ensemble":
		return []string{s.at("e.safetensors")}
	case "test":
		return []string{s.at("rows.npz"), s.probs()}
	}
	return nil
}

func withPrefix(prefix string, words []string) (all []string) {
	for _, w := range words {
		all = append(all, prefix+w)
	}
	return all
}
