package dataset

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/target"
)

// A label −1 or −100 is none, in every format. In regressions it is a number. A file with only −1 and 1 is refused.
func TestNoLabel(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		writePNG(t, filepath.Join(dir, fmt.Sprint(i)+".png"), 2, 2, 3, make([]byte, 12))
	}
	fields, pictures := Options{Fields: []Field{floats("x", 1)}}, Options{Shape: []int64{3, 2, 2}}
	formats := map[string]func(labels [3]string) (string, Options){
		"csv": func(l [3]string) (string, Options) {
			path := filepath.Join(dir, "a.csv")
			write(t, path, []byte("x,label\n1,"+l[0]+"\n2,"+l[1]+"\n3,"+l[2]+"\n"))
			return path, fields
		},
		"jsonl": func(l [3]string) (string, Options) {
			path := filepath.Join(dir, "a.jsonl")
			write(t, path, []byte(fmt.Sprintf("{\"x\":1,\"label\":%s}\n{\"x\":2,\"label\":%s}\n{\"x\":3,\"label\":%s}\n", l[0], l[1], l[2])))
			return path, fields
		},
		"list": func(l [3]string) (string, Options) {
			path := filepath.Join(dir, "list.txt")
			write(t, path, []byte("0.png "+l[0]+"\n1.png "+l[1]+"\n2.png "+l[2]+"\n"))
			return path, pictures
		},
		"npy": func(l [3]string) (string, Options) {
			path, labels := filepath.Join(dir, "x.npy"), filepath.Join(dir, "y.npy")
			write(t, path, append(numpy.Header("<f4", 3, 1), make([]byte, 12)...))
			b := numpy.Header("|i1", 3)
			for _, text := range l {
				var v int
				fmt.Sscan(text, &v)
				b = append(b, byte(v))
			}
			write(t, labels, b)
			opts := fields
			opts.Labels = labels
			return path, opts
		},
	}
	for name, format := range formats {
		for _, c := range []struct {
			labels [3]string
			kind   target.Kind
			known  []string
			want   string // the classes or numbers, or a part of an error
		}{
			{[3]string{"0", "-1", "2"}, target.Classes, nil, "[0 -1 2]"},
			{[3]string{"1", "-100", "0"}, target.Classes, nil, "[1 -1 0]"},
			{[3]string{"1", "-1", "1"}, target.Classes, nil, "all labels are −1 or 1"},
			{[3]string{"1", "-1", "-1"}, target.Labels, nil, "all labels are −1 or 1"},
			{[3]string{"1", "-2", "1"}, target.Classes, nil, "-2"},
			{[3]string{"1", "-1", "2"}, target.Numbers, nil, "[1 -1 2]"},
			{[3]string{"1", "-1", "1"}, target.Numbers, nil, "[1 -1 1]"},
			{[3]string{"1", "-1", "1"}, target.Classes, []string{"-1", "1"}, "[1 0 1]"},
		} {
			if c.known != nil && name == "npy" { // its numbers are never names
				continue
			}
			path, opts := format(c.labels)
			opts.Target, opts.Known = c.kind, names.Known{Classes: c.known}
			d, err := Open([]string{path}, opts)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || strings.HasPrefix(c.want, "[") {
					t.Errorf("%s %v: %v, want %s", name, c.labels, err, c.want)
				}
				continue
			}
			got := fmt.Sprint(d.Labels().Classes)
			if c.kind != target.Classes {
				got = fmt.Sprint(d.Labels().Values)
			}
			if got != c.want {
				t.Errorf("%s %v, kind %d: %s, want %s", name, c.labels, c.kind, got, c.want)
			}
		}
	}
}
