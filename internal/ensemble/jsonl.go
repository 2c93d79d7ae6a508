package ensemble

import (
	"encoding/json"
	"io"
)

// jsonRow is a line of JSON. What an example with an error does not have is
// null, and so is what no number says.
type jsonRow struct {
	Path              string        `json:"path"`
	Label             *int64        `json:"label"`
	Prediction        *int          `json:"prediction"`
	Name              *string       `json:"name,omitempty"`
	Confidence        *json.Number  `json:"confidence"`
	PredictiveEntropy *json.Number  `json:"predictive_entropy"`
	ExpectedEntropy   *json.Number  `json:"expected_entropy"`
	MutualInformation *json.Number  `json:"mutual_information"`
	Top               []jsonTop     `json:"top,omitempty"`
	Probs             []json.Number `json:"probs,omitempty"`
	MemberProbs       [][]number32  `json:"member_probs,omitempty"`
	Error             *string       `json:"error,omitempty"`
}

type jsonTop struct {
	Class       int         `json:"class"`
	Name        string      `json:"name,omitempty"`
	Probability json.Number `json:"probability"`
}

// number32 is written as number writes it.
type number32 float32

func (v number32) MarshalJSON() ([]byte, error) { return []byte(number(float64(v))), nil }

type jsonlWriter struct {
	t   *Table
	out *json.Encoder
}

func (t *Table) jsonl(w io.Writer) RowWriter {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	return &jsonlWriter{t, out}
}

func (j *jsonlWriter) Write(r *Row) error {
	t := j.t
	line := jsonRow{Path: t.data.Name(r.Index), Label: t.label(r.Index)}
	if r.Error != "" {
		line.Error = &r.Error
		return j.out.Encode(line)
	}
	value := func(v float64) *json.Number {
		n := json.Number(number(v))
		return &n
	}
	line.Prediction, line.Confidence = &r.Prediction, value(r.Confidence)
	line.PredictiveEntropy, line.ExpectedEntropy, line.MutualInformation = value(r.PredictiveEntropy), value(r.ExpectedEntropy), value(r.MutualInformation)
	name := func(class int) string {
		if t.names == nil {
			return ""
		}
		return t.names[class]
	}
	if t.names != nil {
		line.Name = &t.names[r.Prediction]
	}
	if t.Columns.Top > 1 {
		for _, top := range r.Top {
			line.Top = append(line.Top, jsonTop{top.Class, name(top.Class), *value(top.Probability)})
		}
	}
	for _, v := range r.Probabilities {
		line.Probs = append(line.Probs, *value(v))
	}
	for first := 0; first < len(r.Members); first += t.Classes {
		var row []number32
		for _, v := range r.Members[first:][:t.Classes] {
			row = append(row, number32(v))
		}
		line.MemberProbs = append(line.MemberProbs, row)
	}
	return j.out.Encode(line)
}

func (j *jsonlWriter) Flush() error { return nil }

func (j *jsonlWriter) Close() error { return nil }
