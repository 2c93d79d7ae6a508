package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/weights"
)

// PartOf returns part index of the given number of parts of the members.
func (e *Ensemble) PartOf(index, of int) records.Part {
	p := records.Part{Index: index, Of: of}
	p.Range(e.Members(), 1)
	return p
}

// Names of the parameters of a part's file, in addition to the metadata of the ensemble's file.
const (
	producerName = "producer"
	askedName    = "asked"      // the arguments of the job
	sizesName    = "statistics" // the number of batch-norm statistics of a member, for each component
)

// Asked returns the head of the file of part p, with nothing but the arguments of the job. It suffices for comparing an
// existing file with the job.
func Asked(p records.Part, arguments []string) (*records.Head, error) {
	parameters, err := records.NewParameters(map[string]any{askedName: arguments})
	return &records.Head{Part: p, Parameters: parameters}, err
}

// PartHead returns the head of the file of part p, whose rows are the batch-norm statistics of the members. The rest of
// the ensemble's file is among the parameters.
func (e *Ensemble) PartHead(p records.Part, producer string, arguments []string) (*records.Head, error) {
	var sizes []int
	for _, c := range e.Components {
		sizes = append(sizes, len(c.Statistics[0]))
	}
	said := e.metadata()
	said[producerName], said[askedName], said[sizesName] = producer, arguments, sizes
	parameters, err := records.NewParameters(said)
	return &records.Head{Part: p, Parameters: parameters}, err
}

// partial is an ensemble whose statistics are in the files of parts.
type partial struct {
	*Ensemble
	producer string
	sizes    []int
}

// newPartial decodes the head of a part's file.
func newPartial(h *records.Head) (*partial, error) {
	st := &weights.Safetensors{Metadata: map[string]string{}}
	for name, value := range h.Parameters {
		st.Metadata[name] = string(value)
	}
	p := &partial{Ensemble: &Ensemble{}}
	if err := fewMetadata(st); err != nil {
		return nil, err
	}
	if err := p.readMetadata(st); err != nil {
		return nil, err
	}
	if err := st.DecodeMetadata(map[string]any{producerName: &p.producer, sizesName: &p.sizes, askedName: new([]string)}); err != nil {
		return nil, err
	}
	if h.Part.All != p.Members() {
		return nil, fmt.Errorf("rows for %d members, want %d", h.Part.All, p.Members())
	}
	if len(p.sizes) != len(p.Components) {
		return nil, fmt.Errorf("sizes of %d components, want %d", len(p.sizes), len(p.Components))
	}
	return p, nil
}

// statistics returns the component and the statistics of member k in its row.
func (p *partial) statistics(k int, r *records.Row) (component, place int, statistics []float32, err error) {
	i, place := p.Find(k)
	if len(r.Values) != p.sizes[i] {
		return 0, 0, nil, fmt.Errorf("member %d: %d batch-norm statistics, want %d", k, len(r.Values), p.sizes[i])
	}
	statistics = make([]float32, len(r.Values))
	for at, v := range r.Values {
		if statistics[at] = float32(v); v-v != 0 {
			return 0, 0, nil, fmt.Errorf("member %d: value %v at index %d, want finite batch-norm statistics", k, v, at)
		}
	}
	return i, place, statistics, nil
}

// ReadPart reads the head of the file of a part, and checks all rows.
func ReadPart(path string) (*records.Saved, error) {
	return records.Read(path, records.SamplePart, func(h *records.Head) (func(*records.Row) error, error) {
		p, err := newPartial(h)
		if err != nil {
			return nil, err
		}
		return func(r *records.Row) error {
			_, _, _, err := p.statistics(h.Part.First+r.Index, r)
			return err
		}, nil
	})
}

// Assemble returns the ensemble of all parts, and the program that made them.
func Assemble(parts []*records.Saved) (e *Ensemble, producer string, err error) {
	p, err := newPartial(&parts[0].Head)
	if err != nil {
		return nil, "", err
	}
	for i := range p.Components {
		p.Components[i].Statistics = make([][]float32, p.Components[i].Members)
	}
	for _, part := range parts {
		err := part.Each(func(r *records.Row) error {
			i, place, statistics, err := p.statistics(r.Index, r)
			p.Components[i].Statistics[place] = statistics
			return err
		})
		if err != nil {
			return nil, "", err
		}
	}
	return p.Ensemble, p.producer, nil
}

// StatisticsRow returns the row of a member in the file of a part.
func StatisticsRow(statistics []float32) *records.Row {
	r := &records.Row{Label: -1, Values: make([]float64, len(statistics))}
	for i, v := range statistics {
		r.Values[i] = float64(v)
	}
	return r
}
