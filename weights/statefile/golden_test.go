package statefile

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/weights"
)

// What testdata/make.py says of a file.
type golden struct {
	Epoch, Step int64
	Ignored     []string
	Tied        [][2]string
	Short       []string
	Error       []string
	Dicts       []struct {
		Key, Prefix string
		Ignored     []string
		Tensors     []struct {
			Name, SHA256 string
			Shape        []int64
			DType        weights.DType
		}
	}
}

func readGoldens(t testing.TB) map[string]golden {
	t.Helper()
	var all map[string]golden
	testfile.JSON(t, "testdata/golden.json", &all)
	return all
}

// Every file of PyTorch's holds what PyTorch says, or is refused with the
// reason.
func TestGolden(t *testing.T) {
	for name, want := range readGoldens(t) {
		t.Run(name, func(t *testing.T) {
			f, err := Open(filepath.Join("testdata", name))
			if err == nil {
				defer f.Close()
			}
			if want.Error != nil {
				if err == nil {
					_, err = f.StateDict("")
				}
				checkRefused(t, err, want.Error)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, f, want)
		})
	}
}

func checkRefused(t *testing.T, err error, words []string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) || !strings.HasPrefix(err.Error(), "testdata"+string(filepath.Separator)) {
			t.Errorf("error %q, want %q", err, w)
		}
	}
}

func checkGolden(t *testing.T, f *File, want golden) {
	if f.Epoch != want.Epoch || f.Step != want.Step {
		t.Errorf("epoch %d, step %d, want %d, %d", f.Epoch, f.Step, want.Epoch, want.Step)
	}
	if got := ignoredNames(f.Ignored); !slices.Equal(got, want.Ignored) {
		t.Errorf("ignored %q, want %q", got, want.Ignored)
	}
	if len(f.StateDicts()) != len(want.Dicts) {
		t.Fatalf("state_dicts %v, want %d", f.StateDicts(), len(want.Dicts))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i, d := range want.Dicts {
		sd, err := f.StateDict(d.Key)
		if err != nil || sd != f.StateDicts()[i] {
			t.Fatalf("state_dict %q: %v", d.Key, err)
		}
		if err := sd.Verify(); err != nil {
			t.Error(err)
		}
		if sd.Prefix != d.Prefix || len(sd.Tensors) != len(d.Tensors) {
			t.Fatalf("prefix %q and %d tensors, want %q and %d", sd.Prefix, len(sd.Tensors), d.Prefix, len(d.Tensors))
		}
		got := ignoredNames(sd.Ignored)
		slices.Sort(got)
		if slices.Sort(d.Ignored); !slices.Equal(got, d.Ignored) {
			t.Errorf("state_dict %q: ignored %q, want %q", d.Key, got, d.Ignored)
		}
		for j, w := range d.Tensors {
			got := sd.Tensors[j]
			short := strings.TrimPrefix(w.Name, d.Prefix)
			if want.Short != nil {
				short = want.Short[j]
			}
			if got.Name != w.Name || got.Short != short || !slices.Equal(got.Shape, w.Shape) || got.DType != w.DType {
				t.Errorf("tensor %d is %q, %q, %v, %v; want %q, %q, %v, %v", j, got.Name, got.Short, got.Shape, got.DType, w.Name, short, w.Shape, w.DType)
				continue
			}
			sum := sha256.Sum256(got.Bytes())
			if hex.EncodeToString(sum[:])[:16] != w.SHA256 {
				t.Errorf("tensor %q: elements differ", w.Name)
			}
			checkStretches(t, got, rng)
		}
		for _, pair := range want.Tied {
			a, _ := sd.Find(pair[0])
			b, _ := sd.Find(pair[1])
			if a == nil || b == nil || !a.Tied(b) {
				t.Errorf("%q are not tied", pair)
			}
		}
	}
}

func ignoredNames(ignored []Ignored) []string {
	names := []string{}
	for _, g := range ignored {
		names = append(names, g.Name)
	}
	return names
}

// checkStretches holds the readers of stretches against all bytes.
func checkStretches(t *testing.T, x *Tensor, rng *rand.Rand) {
	all, size := x.Bytes(), x.DType.Size()
	v := vectorOf(t, x)
	if v.Len() != x.Len() || int64(len(all)) != x.Len()*size {
		t.Fatalf("tensor %q: %d elements in %d bytes, vector of %d", x.Name, x.Len(), len(all), v.Len())
	}
	for range 20 {
		off := rng.Int64N(x.Len() + 1)
		n := rng.Int64N(x.Len() - off + 1)
		got := x.Stretch(off, n)
		if string(got) != string(all[off*size:(off+n)*size]) {
			t.Fatalf("tensor %q: bytes of elements %d to %d differ", x.Name, off, off+n)
		}
		want, have := make([]float32, n), make([]float32, n)
		x.DType.Float32s(want, got)
		if err := v.ReadAt(have, off); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if math.Float32bits(want[i]) != math.Float32bits(have[i]) {
				t.Fatalf("tensor %q: element %d is %v, want %v", x.Name, off+int64(i), have[i], want[i])
			}
		}
	}
}

func vectorOf(t *testing.T, x *Tensor) weights.Vector {
	v, err := weights.NewConcat([]weights.Piece{x.Piece})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What lies contiguous in the file is not copied.
func TestMapped(t *testing.T) {
	f, err := Open("testdata/views.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped := []string{}
	for _, x := range f.StateDicts()[0].Tensors {
		if p := x.Piece; p.Array == nil {
			mapped = append(mapped, x.Name)
			if len(p.Data) > 0 && &p.Data[0] != &x.Bytes()[0] {
				t.Errorf("%q is copied", x.Name)
			}
		}
	}
	want := []string{"whole", "slice", "one", "none", "empty", "ones", "flat", "half", "row_of_one"}
	want = slices.DeleteFunc(want, func(s string) bool { return s == "row_of_one" })
	if !slices.Equal(mapped, want) {
		t.Errorf("mapped %q, want %q", mapped, want)
	}
}
