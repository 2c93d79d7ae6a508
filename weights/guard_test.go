//go:build unix

package weights

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mapped maps a file of n elements of 1, and returns its path too.
func mapped(t *testing.T, dtype DType, n int64) (*Mapping, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	ones := make([]float32, n)
	for i := range ones {
		ones[i] = 1
	}
	data := make([]byte, n*dtype.Size())
	dtype.PutFloat32s(data, ones)
	// File systems count time in ticks of milliseconds or seconds. A write changes this time in any case.
	longAgo := time.Unix(1e9, 0)
	if err := errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, longAgo, longAgo)); err != nil {
		t.Fatal(err)
	}
	m, err := Map(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		Changed() // is told of once
	})
	return m, path
}

func cut(t *testing.T, path string, to int64) {
	t.Helper()
	if err := os.Truncate(path, to); err != nil {
		t.Fatal(err)
	}
}

func wantChanged(t *testing.T, err error, path string) {
	t.Helper()
	if c := (*ChangedError)(nil); !errors.As(err, &c) || c.Path != path {
		t.Errorf("error %v, want that %s changed", err, path)
	}
}

// Whatever reads a file that was cut short fails with its name, also where
// assembler code reads, or the kernel.
func TestGuardedReads(t *testing.T) {
	const n = 1 << 16
	null, err := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	pipe, other, err := os.Pipe() // unlike /dev/null it reads what it is given
	if err != nil {
		t.Fatal(err)
	}
	defer func() { null.Close(); pipe.Close(); other.Close() }()
	vector := func(d DType) func(*Mapping) error {
		return func(m *Mapping) error {
			v, err := NewConcat([]Piece{{DType: d, Data: m.Data}})
			if err != nil {
				return err
			}
			return v.ReadAt(make([]float32, n), 0)
		}
	}
	write := func(m *Mapping) error { // a Concat of its own type is written from where it lies
		v, err := NewConcat([]Piece{{DType: F32, Data: m.Data}})
		if err != nil {
			return err
		}
		return WriteTensor(other, Tensor{Name: "t", DType: F32, Shape: []int64{n}}, v)
	}
	convert := func(m *Mapping) error { // on goroutines of its own
		v, err := NewConcat([]Piece{{DType: F32, Data: m.Data}})
		if err != nil {
			return err
		}
		return WriteTensor(null, Tensor{Name: "t", DType: F16, Shape: []int64{n}}, v)
	}
	for name, c := range map[string]struct {
		dtype DType
		read  func(*Mapping) error
	}{
		"byte":           {F32, func(m *Mapping) error { _ = bytes.Count(m.Data[len(m.Data)-1:], []byte{1}); return nil }},
		"F32":            {F32, vector(F32)},
		"F64":            {F64, vector(F64)},
		"F16":            {F16, vector(F16)},
		"BF16":           {BF16, vector(BF16)},
		"float64s":       {F64, func(m *Mapping) error { F64.Float64s(make([]float64, n), m.Data); return nil }},
		"CRC-32C":        {F32, func(m *Mapping) error { CRC32C(0, m.Data); return nil }},
		"SHA-256":        {F32, func(m *Mapping) error { sha256.Sum256(m.Data); return nil }},
		"compare":        {F32, func(m *Mapping) error { bytes.Equal(m.Data, make([]byte, len(m.Data))); return nil }},
		"copy":           {F32, func(m *Mapping) error { bytes.Clone(m.Data); return nil }},
		"write":          {F32, write},
		"write, rounded": {F32, convert},
		"closed on the way": {F32, func(m *Mapping) error {
			defer m.Close()
			return vector(F32)(m)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m, path := mapped(t, c.dtype, n)
			if name == "compare" { // as far as what is left
				clear := make([]byte, len(m.Data))
				if err := os.WriteFile(path, clear, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cut(t, path, 8192)
			wantChanged(t, Guarded(func() error { return c.read(m) })(), path)
		})
	}
}

// A disk that fails is an I/O error of the file, which is as it was.
func TestGuardedDisk(t *testing.T) {
	m, path := mapped(t, F32, 1<<12)
	cut(t, path, 0)
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	m.watch.size, m.watch.modified = 0, fi.ModTime() // as if it had always been so: only the pages are missing
	err = Guarded(func() error { CRC32C(0, m.Data); return nil })()
	if err == nil || !strings.HasPrefix(err.Error(), path+": byte ") || !strings.HasSuffix(err.Error(), "input/output error") {
		t.Errorf("error %v", err)
	}
}

// Panics that are no faults of files go their way, and errors too.
func TestGuardedPanics(t *testing.T) {
	m, path := mapped(t, F32, 1<<12)
	cut(t, path, 0)
	var none *Mapping
	var sink byte
	defer func() { _ = sink }()
	for name, f := range map[string]func() error{
		"own":      func() error { panic("own") },
		"index":    func() error { _ = m.Data[len(m.Data):][0:1][0]; return nil },
		"nil":      func() error { none.Path = ""; return nil },
		"unmapped": func() error { gone, _ := mapped(t, F32, 1<<12); b := gone.Data; gone.Close(); sink = b[0]; return nil },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			err := Guarded(f)()
			t.Errorf("%s: returned %v", name, err)
		}()
	}
	if err := Guarded(func() error { return os.ErrExist })(); err != os.ErrExist {
		t.Errorf("error %v", err)
	}
}

// Changed tells of a file that was written to, once it is closed once only, and
// not of one that another took the place of.
func TestChanged(t *testing.T) {
	rewrite := func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write([]byte{2})
		return errors.Join(err, f.Close())
	}
	for name, c := range map[string]struct {
		act     func(path string) error
		changed bool
	}{
		"nothing":     {func(string) error { return nil }, false},
		"read":        {func(path string) error { _, err := os.ReadFile(path); return err }, false},
		"cut":         {func(path string) error { return os.Truncate(path, 100) }, true},
		"grown":       {func(path string) error { return os.Truncate(path, 1<<20) }, true},
		"rewritten":   {rewrite, true},
		"removed":     {os.Remove, false},
		"renamed":     {func(path string) error { return os.Rename(path, path+"2") }, false},
		"linked":      {func(path string) error { return os.Link(path, path+"2") }, false},
		"permissions": {func(path string) error { return os.Chmod(path, 0o400) }, false},
		"replaced": {func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("other"), 0o600), os.Rename(path+"2", path))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, closed := range []bool{false, true} {
				m, path := mapped(t, F32, 100)
				if err := c.act(path); err != nil {
					t.Fatal(err)
				}
				if closed {
					m.Close()
				}
				err := Changed()
				if c.changed {
					wantChanged(t, err, path)
				} else if err != nil {
					t.Error(err)
				}
				if err := Changed(); (err != nil) != (c.changed && !closed) {
					t.Errorf("closed %v: told again: %v", closed, err)
				}
				m.Close()
				Changed()
			}
		})
	}
}
