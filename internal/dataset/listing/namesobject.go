package listing

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// namesOfObject reads the names of classes from a JSON object. The object, or one in a config.json, may be
//
//   - {"0": "cat", "1": "dog"}, the id2label of Hugging Face
//   - {"cat": 0, "dog": 1}, the label2id of Hugging Face and the class_to_idx of torchvision
//   - {"0": ["n01440764", "tench"]}, Keras's imagenet_class_index.json
//   - the label_names of timm
//   - the features of Hugging Face's datasets, with one ClassLabel
func namesOfObject(text []byte) ([]string, error) {
	var config struct {
		ID2Label   json.RawMessage `json:"id2label"`
		Label2ID   json.RawMessage `json:"label2id"`
		ClassToIdx json.RawMessage `json:"class_to_idx"`
		LabelNames []string        `json:"label_names"`
		Features   json.RawMessage `json:"features"`
		Pretrained struct {
			LabelNames []string `json:"label_names"`
		} `json:"pretrained_cfg"`
	}
	if err := json.Unmarshal(text, &config); err == nil {
		switch {
		case config.LabelNames != nil:
			return config.LabelNames, nil
		case config.Pretrained.LabelNames != nil:
			return config.Pretrained.LabelNames, nil
		case config.Features != nil:
			if labels := ClassLabels(config.Features); len(labels) == 1 {
				return slices.Collect(maps.Values(labels))[0], nil
			}
		}
		for _, part := range []json.RawMessage{config.ID2Label, config.Label2ID, config.ClassToIdx} {
			if part != nil {
				text = part
				break
			}
		}
	}
	var values map[string]any
	if err := json.Unmarshal(text, &values); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("not valid JSON: %w", err)
		}
		return nil, errors.New("a JSON value of another kind, " + wantNames)
	}
	return byNumber(values)
}

const wantNames = `want {"0": "cat", "1": "dog"} or {"cat": 0, "dog": 1}`

// byNumber returns the names in the order of their numbers. Either the keys are the numbers, or the values are.
func byNumber(values map[string]any) ([]string, error) {
	number := func(text string) (int, bool) {
		i, err := strconv.Atoi(text)
		return i, err == nil && i >= 0
	}
	first, second := make([]string, len(values)), make([]string, len(values))
	for key, value := range values {
		i, isNumber := number(key)
		name, other := "", ""
		switch v := value.(type) {
		case float64:
			i, isNumber = int(v), v == float64(int(v)) && v >= 0
			name = key
		case string:
			if name = v; !isNumber {
				i, isNumber = number(v)
				name = key
			}
		case []any:
			if len(v) == 2 { // an identifier, and a name
				other, _ = v[0].(string)
				name, _ = v[1].(string)
			}
		}
		if name == "" && value != "" {
			return nil, fmt.Errorf("%q has a value of another kind, %s", key, wantNames)
		}
		if !isNumber || i >= len(values) || first[i] != "" {
			return nil, fmt.Errorf("class %q of %d, want each number from 0 to %d once", key, len(values), len(values)-1)
		}
		first[i], second[i] = name, other
	}
	if repeats(first) && !slices.Contains(second, "") { // ImageNet has two classes named crane, and an identifier of each
		return second, nil
	}
	return first, nil
}

func repeats(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names)
}

// ClassLabels returns the names of classes of each column that Hugging Face's datasets describes as a ClassLabel. features is
// the JSON object that has the columns.
func ClassLabels(features []byte) map[string][]string {
	var columns map[string]json.RawMessage
	if json.Unmarshal(features, &columns) != nil {
		return nil
	}
	out := map[string][]string{}
	for column, text := range columns {
		var c struct {
			Names json.RawMessage `json:"names"`
			Type  string          `json:"_type"`
		}
		var list []string
		if json.Unmarshal(text, &c) != nil || c.Type != "ClassLabel" {
			continue
		}
		if json.Unmarshal(c.Names, &list) == nil && len(list) > 0 {
			out[column] = list
		}
	}
	return out
}
