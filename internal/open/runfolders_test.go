package open

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A folder is a random run: iterates of SGD, and what programs leave beside them.
type runFolder struct {
	t   *testing.T
	r   *rand.Rand
	dir string
}

func (f *runFolder) save(path, tensor string, values []float32) string {
	f.t.Helper()
	path = filepath.Join(f.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		f.t.Fatal(err)
	}
	out, err := os.Create(path)
	if err == nil {
		err = statefile.Write(out, "x", []statefile.Entry{{
			Name:     tensor,
			DType:    weights.F32,
			Shape:    []int64{int64(len(values))},
			Elements: func(w io.Writer) error { return weights.WriteFloats(w, values) },
		}}, "")
		out.Close()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return path
}

// set leaves one run below a folder, and returns its iterates in the order of training.
func (f *runFolder) set(below string) (iterates []string) {
	const size = 400
	n, first, r := 4+f.r.IntN(6), 1+f.r.IntN(30), f.r
	below = filepath.Join(below, []string{"", "checkpoints", "version_0/checkpoints"}[r.IntN(3)])
	stem := []string{"epoch_%d", "model-%04d", "best-epoch=%d-val_loss=0.5", "step%d", "net_epoch=%d", "w%d"}[r.IntN(6)]
	suffix := []string{".pt", ".pth", ".ckpt", ".bin"}[r.IntN(4)]
	center, ema, mean := make([]float32, size), make([]float32, size), make([]float32, size)
	for i := range center {
		center[i] = float32(r.NormFloat64())
	}
	x, averaged, perFolder := slices.Clone(center), r.IntN(4), r.IntN(4) == 0
	copy(ema, x)
	for k := range n {
		for i := range x {
			x[i] = center[i] + 0.6*(x[i]-center[i]) + 0.1*float32(r.NormFloat64())
			ema[i] += (x[i] - ema[i]) / 5
			mean[i] += x[i] / float32(n)
		}
		name := fmt.Sprintf(stem, first+k)
		if perFolder {
			iterates = append(iterates, f.save(filepath.Join(below, fmt.Sprintf("epoch_%d", first+k), "weights"+suffix), "fc.weight", x))
			continue
		}
		iterates = append(iterates, f.save(filepath.Join(below, name+suffix), "fc.weight", x))
		if averaged == 1 {
			f.save(filepath.Join(below, name+"_ema"+suffix), "fc.weight", ema)
		}
	}
	if !perFolder {
		for _, extra := range []string{"last", "best", "latest", "final"} {
			if r.IntN(4) == 0 {
				f.save(filepath.Join(below, extra+suffix), "fc.weight", x)
			}
		}
		if r.IntN(3) == 0 {
			f.save(filepath.Join(below, "optimizer"+suffix), "momentum", x)
		}
		switch averaged {
		case 2:
			f.save(filepath.Join(below, fmt.Sprintf(stem, first+n)+suffix), "fc.weight", mean) // as Lightning's averaging
		case 3:
			f.save(filepath.Join(below, "swa"+suffix), "fc.weight", mean)
		}
	}
	return iterates
}

// Of any run folder the iterates of one run are averaged, or there is a question.
func TestRunFolders(t *testing.T) {
	t.Parallel()
	graph, err := os.ReadFile("../../cmd/swagwrap/testdata/ckpt-1.onnx")
	if err != nil {
		t.Fatal(err)
	}
	taken, asked := 0, 0
	for seed := range uint64(250) {
		f := &runFolder{t, rand.New(rand.NewPCG(seed, 9)), filepath.Join(t.TempDir(), []string{"run", "out.2", "my run"}[seed%3])}
		sets := [][]string{f.set([]string{"", "a", "logs/x"}[f.r.IntN(3)])}
		if f.r.IntN(5) == 0 {
			sets = append(sets, f.set("other"))
		}
		if f.r.IntN(2) == 0 {
			if err := os.WriteFile(filepath.Join(f.dir, "model.onnx"), graph, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		w, err := averaged(t, FitOptions{Checkpoints: []string{f.dir}})
		if e := (*Error)(nil); errors.As(err, &e) && e.Usage {
			asked++
			continue
		}
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		taken++
		w.Close()
		if !slices.ContainsFunc(sets, func(of []string) bool { return slices.Equal(of, w.Paths) }) {
			t.Errorf("seed %d: averaged %q, want one of %q", seed, w.Paths, sets)
		}
	}
	if taken < 125 || asked < 10 {
		t.Errorf("%d were averaged, and %d asked about", taken, asked)
	}
}
