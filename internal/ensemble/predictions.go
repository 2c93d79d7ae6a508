package ensemble

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
)

// Predictions are the rows that scoring gives out, one per example.
type Predictions struct {
	data         dataset.Dataset
	sums         *Sums
	probs        []float64
	total, noise []float64 // predictive and expected entropy
	mutual       []float64
}

// NewPredictions averages the members in sums, by their weights.
func NewPredictions(data dataset.Dataset, sums *Sums) *Predictions {
	p := &Predictions{data: data, sums: sums, probs: sums.Mean(), noise: sums.ExpectedEntropy()}
	p.total = calibrate.PredictiveEntropy(nil, p.probs, sums.Classes)
	p.mutual = calibrate.MutualInformation(nil, p.probs, sums.Classes, p.noise)
	return p
}

// Formats lists the extensions that Write knows.
var Formats = []string{".csv", ".jsonl", ".npz"}

// Format returns the format of a file name, or of "-", which is CSV.
func Format(name string) (string, error) {
	if name == "-" {
		return ".csv", nil
	}
	ext := strings.ToLower(filepath.Ext(name))
	for _, f := range Formats {
		if ext == f {
			return f, nil
		}
	}
	return "", fmt.Errorf("%s: unknown output format %q, want one of %s", name, ext, strings.Join(Formats, " "))
}

// Write writes all rows in the given format. Entropies are in nats. The
// columns p_0, p_1 … hold the averaged probabilities; allProbs asks for them
// (.npz always has them, as one array).
func (p *Predictions) Write(w io.Writer, format string, allProbs bool) error {
	buf := bufio.NewWriterSize(w, 1<<16)
	var err error
	switch format {
	case ".csv":
		err = p.writeCSV(buf, allProbs)
	case ".jsonl":
		err = p.writeJSONL(buf, allProbs)
	case ".npz":
		err = p.writeNPZ(buf)
	default:
		panic("ensemble: unknown format")
	}
	if err != nil {
		return err
	}
	return buf.Flush()
}

// row returns the averaged probabilities of example i and the class they favour.
func (p *Predictions) row(i int) (probs []float64, best int) {
	c := p.sums.Classes
	probs = p.probs[i*c : (i+1)*c]
	for k, v := range probs {
		if v > probs[best] {
			best = k
		}
	}
	return probs, best
}

func (p *Predictions) writeCSV(w io.Writer, allProbs bool) error {
	out := csv.NewWriter(w)
	header := []string{"path", "label", "prediction", "confidence", "predictive_entropy", "expected_entropy", "mutual_information"}
	if allProbs {
		for c := range p.sums.Classes {
			header = append(header, fmt.Sprintf("p_%d", c))
		}
	}
	if err := out.Write(header); err != nil {
		return err
	}
	labels := p.data.Labels()
	for i := range p.data.Len() {
		probs, best := p.row(i)
		label := ""
		if labels != nil {
			label = strconv.Itoa(labels[i])
		}
		rec := []string{p.data.Name(i), label, strconv.Itoa(best), number(probs[best]), number(p.total[i]), number(p.noise[i]), number(p.mutual[i])}
		if allProbs {
			for _, v := range probs {
				rec = append(rec, number(v))
			}
		}
		if err := out.Write(rec); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// number keeps nine digits: networks answer in float32, which has no more.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 9, 64) }

func (p *Predictions) writeJSONL(w io.Writer, allProbs bool) error {
	type record struct {
		Path              string        `json:"path"`
		Label             *int          `json:"label"`
		Prediction        int           `json:"prediction"`
		Confidence        json.Number   `json:"confidence"`
		PredictiveEntropy json.Number   `json:"predictive_entropy"`
		ExpectedEntropy   json.Number   `json:"expected_entropy"`
		MutualInformation json.Number   `json:"mutual_information"`
		Probs             []json.Number `json:"probs,omitempty"`
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	labels := p.data.Labels()
	for i := range p.data.Len() {
		probs, best := p.row(i)
		r := record{Path: p.data.Name(i), Prediction: best, Confidence: json.Number(number(probs[best])),
			PredictiveEntropy: json.Number(number(p.total[i])), ExpectedEntropy: json.Number(number(p.noise[i])),
			MutualInformation: json.Number(number(p.mutual[i]))}
		if labels != nil {
			r.Label = &labels[i]
		}
		if allProbs {
			for _, v := range probs {
				r.Probs = append(r.Probs, json.Number(number(v)))
			}
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (p *Predictions) writeNPZ(w io.Writer) error {
	n, c := p.data.Len(), p.sums.Classes
	prediction := make([]int64, n)
	confidence := make([]float64, n)
	for i := range n {
		probs, best := p.row(i)
		prediction[i], confidence[i] = int64(best), probs[best]
	}
	arrays := []struct {
		name string
		data any
	}{
		{"probs", mat.NewDense(n, c, p.probs)},
		{"prediction", prediction},
		{"confidence", confidence},
		{"predictive_entropy", p.total},
		{"expected_entropy", p.noise},
		{"mutual_information", p.mutual},
		{"label", int64s(p.data.Labels())},
	}
	z := npz.NewWriter(w)
	for _, a := range arrays {
		if labels, ok := a.data.([]int64); ok && len(labels) == 0 {
			continue // unlabelled
		}
		if err := z.Write(a.name, a.data); err != nil {
			return err
		}
	}
	return z.Close()
}

func int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}
