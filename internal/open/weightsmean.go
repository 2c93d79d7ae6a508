package open

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// WeightsMean is the average of checkpoints whose network no exporter takes. Names of tensors say which is which.
type WeightsMean struct {
	*Opener
	Paths []string
	files []*statefile.File
	dicts []*statefile.StateDict
	// Moved are the batch-norm statistics that training moved. The file has those of the last checkpoint.
	Moved []string
}

// Close closes the checkpoints.
func (w *WeightsMean) Close() {
	for _, f := range w.files {
		f.Close()
	}
}

// OpenWeightsMean opens the checkpoints of an average, and refuses a set that has no average. The caller closes them.
func OpenWeightsMean(a *Opener, o FitOptions, of *Ordered) (_ *WeightsMean, err error) {
	w := &WeightsMean{Opener: a}
	defer func() {
		if err != nil {
			w.Close()
		}
	}()
	for _, path := range of.Paths {
		if err := w.open(path, of); err != nil {
			return nil, err
		}
	}
	for i := range w.dicts {
		if err := w.same(i); err != nil {
			return nil, err
		}
	}
	if err := w.leaveAverages(o.Averages, of.moments); err != nil {
		return nil, err
	}
	if n := len(w.Paths); n < 2 {
		return nil, BadInput(fmt.Errorf("%s: 1 checkpoint has no average", strings.Join(w.Paths, ", ")), "give at least 2 of one run")
	}
	for _, t := range w.last().Tensors {
		if statefile.IsStatistic(t.Name) && slices.ContainsFunc(w.dicts, func(sd *statefile.StateDict) bool {
			return !slices.Equal(shortOf(sd)[t.Short].Bytes(), t.Bytes())
		}) {
			w.Moved = append(w.Moved, t.Name)
		}
	}
	return w, nil
}

func (w *WeightsMean) last() *statefile.StateDict { return w.dicts[len(w.dicts)-1] }

// open opens a checkpoint, and the state_dict in it.
func (w *WeightsMean) open(path string, of *Ordered) error {
	if strings.EqualFold(filepath.Ext(path), ".onnx") {
		return BadInput(fmt.Errorf("%s: an ONNX file is a graph with weights", path), "leave out "+setting.NoGraph.String())
	}
	f := of.opened[path]
	delete(of.opened, path)
	if f == nil {
		var err error
		if f, err = statefile.Open(path); err != nil {
			return BadInput(err)
		}
	}
	w.Paths, w.files = append(w.Paths, path), append(w.files, f)
	sd, err := f.StateDict(of.Source.StateDict.Value)
	if err == nil {
		err = sd.Verify()
	}
	if err != nil {
		var hints []string
		for _, sd := range f.StateDicts() {
			hints = append(hints, setting.StateDict.With(sd.Key)+" takes "+sd.String())
		}
		if sd != nil || len(hints) < 2 {
			hints = nil
		}
		return BadInput(err, hints...)
	}
	w.dicts = append(w.dicts, sd)
	return nil
}

func shortOf(sd *statefile.StateDict) map[string]*statefile.Tensor {
	tensors := make(map[string]*statefile.Tensor, len(sd.Tensors))
	for _, t := range sd.Tensors {
		tensors[t.Short] = t
	}
	return tensors
}

// same fails if a checkpoint has other tensors than the last one.
func (w *WeightsMean) same(i int) error {
	have, path := shortOf(w.dicts[i]), w.Paths[i]
	from := w.Paths[len(w.Paths)-1]
	fail := func(name, what string) error {
		return BadInput(&weights.Error{Path: path, Tensor: name, What: what}, "all checkpoints must be of one network")
	}
	for _, want := range w.last().Tensors {
		t := have[want.Short]
		if delete(have, want.Short); t == nil {
			return fail(want.Name, "is not there, want it as in "+from)
		}
		if !slices.Equal(t.Shape, want.Shape) {
			return fail(t.Name, fmt.Sprintf("shape %d, want %d as in %s", t.Shape, want.Shape, from))
		}
	}
	for _, t := range have {
		return fail(t.Name, "is not in "+from)
	}
	return nil
}

// leaveAverages removes averages and copies among the checkpoints, as a fit does.
func (w *WeightsMean) leaveAverages(how Averages, moments map[string]string) error {
	var twins []checkpoints.Pair
	for i := range w.dicts {
		if k := slices.IndexFunc(w.dicts[:i], func(sd *statefile.StateDict) bool { return sd.SameWeights(w.dicts[i]) }); k >= 0 {
			twins = append(twins, checkpoints.Pair{k, i})
		}
	}
	for _, at := range slices.Backward(w.candidates(how, moments).copies(twins)) {
		w.leave(at)
	}
	c := w.candidates(how, moments)
	if how != KeepAverages && !slices.Contains(c.marks, "") {
		w.Warnf("%s: all files are averages (%s). SWA is the average of the weights that SGD moved", w.Paths[0], c.marks[0])
	}
	found, err := c.averages(w.sample())
	for _, a := range slices.Backward(found) {
		w.leave(a.at)
	}
	return err
}

// candidates returns the checkpoints as those among which there may be averages.
func (w *WeightsMean) candidates(how Averages, moments map[string]string) *candidates {
	c := &candidates{Opener: w.Opener, how: how, paths: w.Paths, moments: moments, keeps: func(string) {}}
	for _, sd := range w.dicts {
		c.marks = append(c.marks, sd.Average().Mark)
	}
	return c
}

func (w *WeightsMean) leave(i int) {
	w.files[i].Close()
	w.Paths, w.files, w.dicts = slices.Delete(w.Paths, i, i+1), slices.Delete(w.files, i, i+1), slices.Delete(w.dicts, i, i+1)
}

// sample returns some weights of each checkpoint.
func (w *WeightsMean) sample() (values [][]float32) {
	most := int64(min(sampleWeights, sampleValues/len(w.dicts)))
	for _, sd := range w.dicts {
		tensors, row := shortOf(sd), []float32(nil)
		for _, t := range w.last().Tensors {
			if n := min(t.Len(), 1+most*t.Len()/w.last().Len()); !statefile.IsStatistic(t.Name) && n > 0 {
				part := make([]float32, n)
				t.DType.Float32s(part, tensors[t.Short].Stretch(0, n))
				row = append(row, part...)
			}
		}
		values = append(values, row)
	}
	return values
}

// Write writes the average under the names of the last checkpoint. Counters and batch-norm statistics are those of that checkpoint.
func (w *WeightsMean) Write(out io.WriterAt, producer string) error {
	var entries []statefile.Entry
	all, spread, size := make([]map[string]*statefile.Tensor, len(w.dicts)), 0., 0.
	for i, sd := range w.dicts {
		all[i] = shortOf(sd)
	}
	for _, t := range w.last().All() {
		e := statefile.Entry{Name: t.Name, DType: t.DType, Shape: t.Shape}
		if _, weight := w.last().Find(t.Name); weight && !statefile.IsStatistic(t.Name) {
			e.Elements = func(out io.Writer) error {
				s, m, err := w.mean(out, t, all)
				spread, size = spread+s, size+m
				return err
			}
		} else {
			e.Elements = func(out io.Writer) error { _, err := out.Write(t.Bytes()); return err }
		}
		entries = append(entries, e)
	}
	var names []string
	for _, path := range w.Paths {
		names = append(names, filepath.Base(path))
	}
	origin, err := json.Marshal(map[string]any{
		"producer":         producer,
		"checkpoints":      names,
		"statistics_moved": w.Moved,
	})
	if err != nil {
		return err
	}
	about := map[string]string{"format": "pt", "kind": kind.AverageKind}
	write := func() error { return statefile.WriteSafetensors(out, entries, about, string(origin)) }
	if err := weights.Guarded(write)(); err != nil {
		return err
	}
	if share := math.Sqrt(spread / max(size, math.SmallestNonzeroFloat64)); share > trajectory.UsefulSpread {
		w.Warnf("the weights vary by %s of their size: the checkpoints seem to be of different runs, and their average is no trained "+
			"network", report.Percent(share, 2))
	}
	return nil
}

// mean writes the mean of a tensor, and returns the sum of its squares and that of the variance. It fails at a value that no trained
// network has.
func (w *WeightsMean) mean(out io.Writer, t *statefile.Tensor, of []map[string]*statefile.Tensor) (spread, size float64, err error) {
	const block = 1 << 14
	sum, squares, row := make([]float64, block), make([]float64, block), make([]float64, block)
	short, bytes := make([]float32, block), make([]byte, 8*block)
	for first := int64(0); first < t.Len(); first += block {
		n := int(min(block, t.Len()-first))
		clear(sum)
		clear(squares)
		for i, tensors := range of {
			o := tensors[t.Short]
			if o.DType == weights.F64 {
				o.DType.Float64s(row[:n], o.Stretch(first, int64(n)))
			} else {
				o.DType.Float32s(short[:n], o.Stretch(first, int64(n)))
				for k, v := range short[:n] {
					row[k] = float64(v)
				}
			}
			for k, v := range row[:n] {
				if !weights.Weight.Possible(v) {
					return 0, 0, BadInput(&weights.Error{Path: w.Paths[i], Tensor: o.Name, What: fmt.Sprintf("element %d is %v, want %s",
						first+int64(k), v, weights.Weight.Want())}, checkpoints.Diverged)
				}
				sum[k] += v
				squares[k] += v * v
			}
		}
		for k := range n {
			sum[k] /= float64(len(of))
			spread, size = spread+max(0, squares[k]/float64(len(of))-sum[k]*sum[k]), size+sum[k]*sum[k]
			short[k] = float32(sum[k])
		}
		if t.DType == weights.F64 {
			err = weights.WriteFloats(out, sum[:n])
		} else {
			t.DType.PutFloat32s(bytes, short[:n])
			_, err = out.Write(bytes[:int64(n)*t.DType.Size()])
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return spread, size, nil
}
