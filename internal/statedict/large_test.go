//go:build large && linux

package statedict

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A network of 7 billion weights in 14 shards of bfloat16, whose posterior and checkpoints are files with holes. Only the result
// takes room on the disk.
const (
	shards, perShard = 14, 8
	rows, columns    = 8192, 7630
	elements         = shards * perShard * rows * columns
	mostMemory       = 500 << 20
	room             = 2*elements + 1<<30
)

// Seven billion weights are written as shards in less memory than a hundredth of them.
func TestSevenBillion(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, name := range []string{from, to} {
		if err := os.Mkdir(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if free := freeBytes(t, dir); free < room {
		t.Fatalf("%s: %d bytes free, want %d: TMPDIR names another folder", dir, free, int64(room))
	}
	form := &Form{Folder: from, file: sparseFolder(t, from)}
	mean := filepath.Join(dir, "mean")
	hole(t, mean, nil, 4*elements)
	m, err := weights.Map(mean)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	sd, err := form.file.StateDict("")
	if err != nil {
		t.Fatal(err)
	}
	var offset int64
	for _, x := range sd.All() {
		form.tensors = append(form.tensors, tensor{name: x.Name, dtype: x.DType, shape: x.Shape, shard: x.Storage.Path, role: weights.Parameter, offset: offset})
		offset += x.Len()
	}
	if offset != elements {
		t.Fatalf("%d weights, want %d", offset, int64(elements))
	}
	w := &Weights{Form: form, Parameters: counting{m}}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // the peak begins here
		t.Fatal(err)
	}
	err = w.WriteFolder(func(name string, write func(File) error) error {
		f, err := os.Create(filepath.Join(to, name))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := write(f); err != nil {
			return err
		}
		return f.Sync()
	}, "{}")
	if err != nil {
		t.Fatal(err)
	}
	peak := peakBytes(t)
	t.Logf("%d weights, %.1f GB in %d shards: peak memory %d MB", int64(elements), float64(2*elements)/1e9, shards, peak>>20)
	if peak > mostMemory {
		t.Errorf("%d MB of memory, want at most %d", peak>>20, mostMemory>>20)
	}
	check(t, to, sd)
}

// check reads some weights of each tensor back.
func check(t *testing.T, dir string, want *statefile.StateDict) {
	t.Helper()
	f, err := statefile.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sd, err := f.StateDict("")
	if err != nil {
		t.Fatal(err)
	}
	if len(sd.All()) != len(want.All()) {
		t.Fatalf("%d tensors, want %d", len(sd.All()), len(want.All()))
	}
	places := make(map[string]int64)
	var offset int64
	for _, x := range want.All() {
		places[x.Name] = offset
		offset += x.Len()
	}
	for _, x := range sd.All() {
		for _, i := range []int64{0, 1, x.Len() / 2, x.Len() - 1} {
			got := math.Float32frombits(uint32(binary.LittleEndian.Uint16(x.Piece.Stretch(i, 1))) << 16)
			if value := valueAt(places[x.Name] + i); got != value {
				t.Fatalf("%s, weight %d: %v, want %v", x.Name, i, got, value)
			}
		}
	}
}

// counting is a vector that is read from a mapped file, and whose elements tell their place.
type counting struct{ m *weights.Mapping }

func (c counting) Len() int64 { return elements }

func (c counting) ReadAt(dst []float32, off int64) error {
	stored := weights.Piece{DType: weights.F32, Data: c.m.Data}
	v, err := weights.NewConcat([]weights.Piece{stored})
	if err == nil {
		err = v.ReadAt(dst, off)
	}
	for i := range dst {
		dst[i] += valueAt(off + int64(i))
	}
	c.m.Release()
	return err
}

// valueAt is a number that bfloat16 holds.
func valueAt(i int64) float32 { return float32(i%251) - 125 }

// sparseFolder makes a folder of Hugging Face.
func sparseFolder(t *testing.T, dir string) *statefile.File {
	t.Helper()
	places := make(map[string]string)
	for k := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", k+1, shards)
		header := make(map[string]any)
		const bytes = 2 * rows * columns
		for i := range perShard {
			tensor := fmt.Sprintf("model.layers.%d.weight", k*perShard+i)
			places[tensor] = name
			header[tensor] = map[string]any{"dtype": "BF16", "shape": []int{rows, columns}, "data_offsets": []int{i * bytes, (i + 1) * bytes}}
		}
		hole(t, filepath.Join(dir, name), header, perShard*bytes)
	}
	js, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": int64(2 * elements)}, "weight_map": places})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "model.safetensors.index.json"), js, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := statefile.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// hole writes a file of zeros that takes no room, behind a header of safetensors if there is one.
func hole(t *testing.T, path string, header map[string]any, size int64) {
	t.Helper()
	var b bytes.Buffer
	if header != nil {
		js, err := json.Marshal(header)
		if err != nil {
			t.Fatal(err)
		}
		js = append(js, bytes.Repeat([]byte(" "), (8-len(js)%8)%8)...)
		b.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(js))))
		b.Write(js)
	}
	err := os.WriteFile(path, b.Bytes(), 0o666)
	if err == nil {
		err = os.Truncate(path, int64(b.Len())+size)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// peakBytes is the most memory that the process had, with the parts of mapped files that were in it.
func peakBytes(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("the system does not tell the memory of the process")
	return 0
}

func freeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}
