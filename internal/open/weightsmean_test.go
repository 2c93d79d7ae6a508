package open

import (
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// number is element i of tensor k in checkpoint e: any numbers that are exact in 16 bits.
func number(e, k, i int) float64 { return float64((e*e*7+k*3+i*5)%64)/16 - 2 }

// stateOf writes checkpoint e, with a tensor of each type of floats, batch norm and a counter.
func stateOf(t *testing.T, path string, e int, change func(entries []statefile.Entry) []statefile.Entry) string {
	t.Helper()
	const n = 6
	entries := []statefile.Entry{}
	for k, d := range []weights.DType{weights.F32, weights.F16, weights.BF16, weights.F64} {
		entries = append(entries, statefile.Entry{Name: "net." + d.String(), DType: d, Shape: []int64{2, 3}, Elements: func(w io.Writer) error {
			if d == weights.F64 {
				var row []float64
				for i := range n {
					row = append(row, number(e, k, i))
				}
				return weights.WriteFloats(w, row)
			}
			var row []float32
			for i := range n {
				row = append(row, float32(number(e, k, i)))
			}
			b := make([]byte, n*d.Size())
			d.PutFloat32s(b, row)
			_, err := w.Write(b)
			return err
		}})
	}
	for name, v := range map[string]float64{"net.bn.running_mean": float64(e), "net.bn.running_var": 1} {
		entries = append(entries, statefile.Entry{Name: name, DType: weights.F64, Shape: []int64{1}, Elements: func(w io.Writer) error {
			return weights.WriteFloats(w, []float64{v})
		}})
	}
	entries = append(entries, statefile.Entry{Name: "net.bn.num_batches_tracked", DType: weights.I64, Shape: []int64{}, Elements: func(w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, int64(10*e))
	}})
	if change != nil {
		entries = change(entries)
	}
	f, err := os.Create(path)
	if err == nil {
		err = statefile.Write(f, "x", entries, "")
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

type quiet struct{ Reporter }

func (quiet) Logf(string, ...any)  {}
func (quiet) Warnf(string, ...any) {}

func averaged(t *testing.T, o FitOptions) (*WeightsMean, error) {
	t.Helper()
	o.NoGraph = true
	a := &Opener{Reporter: quiet{}}
	of, err := a.CheckpointOrder(o)
	if err != nil {
		return nil, err
	}
	defer of.Close()
	return OpenWeightsMean(a, o, of)
}

func TestWeightsMean(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for e := range 4 {
		stateOf(t, filepath.Join(dir, "epoch_"+string(rune('1'+e))+".pt"), e, nil)
	}
	stateOf(t, filepath.Join(dir, "last.pt"), 3, nil) // a copy
	w, err := averaged(t, FitOptions{Checkpoints: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	path := filepath.Join(t.TempDir(), "swa.safetensors")
	out, err := os.Create(path)
	if err == nil {
		err = w.Write(out, "test")
		out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if is := kind.Detect(path); is != kind.Average {
		t.Errorf("the file is %v", is)
	}
	if !slices.Equal(w.Moved, []string{"net.bn.running_mean"}) {
		t.Errorf("moved: %q", w.Moved)
	}
	f, err := statefile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sd, err := f.StateDict("")
	if err != nil {
		t.Fatal(err)
	}
	for k, d := range []weights.DType{weights.F32, weights.F16, weights.BF16, weights.F64} {
		x, ok := sd.Find("net." + d.String())
		if !ok || x.DType != d {
			t.Fatalf("net.%v: %v", d, x)
		}
		got := make([]float32, 6)
		if d == weights.F64 {
			for i := range got {
				got[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(x.Bytes()[8*i:])))
			}
		} else {
			d.Float32s(got, x.Bytes())
		}
		for i, v := range got {
			want := (number(0, k, i) + number(1, k, i) + number(2, k, i) + number(3, k, i)) / 4 // exact in 16 bits
			if float64(v) != want {
				t.Errorf("net.%v[%d]: %v, want %v", d, i, v, want)
			}
		}
	}
	if x, ok := sd.Find("net.bn.running_mean"); !ok || math.Float64frombits(binary.LittleEndian.Uint64(x.Bytes())) != 3 || sd.Batches() != 30 {
		t.Error("batch norm and its counter are not those of the last checkpoint")
	}
}

func TestWeightsMeanRefuses(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		change func(entries []statefile.Entry) []statefile.Entry // of the second checkpoint
		files  int
	}{
		`epoch_2.pt: tensor "net.F16": is not there, want it as in`: {func(e []statefile.Entry) []statefile.Entry { return slices.Delete(e, 1, 2) }, 3},
		`epoch_2.pt: tensor "net.F32": shape [3 2], want [2 3] as in`: {func(e []statefile.Entry) []statefile.Entry {
			e[0].Shape = []int64{3, 2}
			return e
		}, 3},
		`epoch_2.pt: tensor "net.F64": element 1 is NaN, want `: {func(e []statefile.Entry) []statefile.Entry {
			e[3].Elements = func(w io.Writer) error { return weights.WriteFloats(w, []float64{0, math.NaN(), 0, 0, 0, 0}) }
			return e
		}, 3},
		`epoch_2.pt: tensor "net.more": is not in`: {func(e []statefile.Entry) []statefile.Entry {
			more := e[0]
			more.Name = "net.more"
			return append(e, more)
		}, 3},
		"1 checkpoint has no average": {nil, 1},
	} {
		dir := t.TempDir()
		for e := range c.files {
			change := c.change
			if e != 1 {
				change = nil
			}
			stateOf(t, filepath.Join(dir, "epoch_"+string(rune('1'+e))+".pt"), e, change)
		}
		w, err := averaged(t, FitOptions{Checkpoints: []string{dir}})
		if err == nil {
			err = w.Write(nowhere{}, "test")
			w.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	dir := t.TempDir()
	for e, name := range []string{"epoch_1.pt", "epoch_2.pt", "epoch_2_ema.pt"} {
		stateOf(t, filepath.Join(dir, name), e, nil)
	}
	if _, err := averaged(t, FitOptions{Checkpoints: []string{filepath.Join(dir, "epoch_1.pt"), filepath.Join(dir, "epoch_2.pt"), filepath.Join(dir, "epoch_2_ema.pt")}}); err == nil || !strings.Contains(err.Error(), `the word "ema"`) {
		t.Errorf("a moving average among the files: %v", err)
	}
}
