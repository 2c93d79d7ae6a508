package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/target"
)

// A table asks for all that it does not tell at once, and says what to type.
func TestUnclear(t *testing.T) {
	for name, tt := range map[string]struct {
		head string
		opts Options
		asks []string // parts of the question, or nil if there is none
		hint string
	}{
		"both":             {"a,b,c", Options{}, []string{`"a", "b", "c" are the 2`, "which column has the labels"}, `if "c" has the labels: Columns a,b LabelColumn c`},
		"columns":          {"a,b,c,label", Options{}, []string{`"a", "b", "c" are the 2`}, "say it: Columns A,B,C"},
		"labels":           {"a,b", Options{}, []string{"which column has the labels"}, "say it: LabelColumn NAME"},
		"many":             {"a,b,c,d", Options{}, []string{"are the 2", "has the labels"}, "say it: Columns A,B,C LabelColumn NAME"},
		"odd names":        {"a b,\"c,d\",e", Options{}, []string{"are the 2", "has the labels"}, "say it: Columns A,B,C LabelColumn NAME"},
		"nothing":          {"a,b,label", Options{}, nil, ""},
		"said columns":     {"a,b,c,label", Options{Columns: map[string][]string{"x": {"a", "b"}}}, nil, ""},
		"said label":       {"a,b,c", Options{Named: listing.Columns{Labels: []string{"c"}}}, nil, ""},
		"labels elsewhere": {"a,b", Options{Labels: "l.csv"}, nil, ""},
		"targets":          {"a,b,target_0,target_1", Options{Target: target.Numbers}, nil, ""},
	} {
		path := filepath.Join(t.TempDir(), "a.csv")
		columns := strings.Count(tt.head, ",") + 1 - strings.Count(tt.head, `"`)/2
		if err := os.WriteFile(path, []byte(tt.head+"\n"+strings.Repeat("1,", columns-1)+"1\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		tt.opts.Fields = []Field{floats("x", 2)}
		u := Unclear(path, tt.opts)
		if (u != nil) != (tt.asks != nil) {
			t.Errorf("%s: %v", name, u)
		}
		if u == nil {
			continue
		}
		for _, part := range tt.asks {
			if !strings.Contains(u.Error(), part) {
				t.Errorf("%s: %v, want %q", name, u, part)
			}
		}
		if len(tt.asks) == 1 && strings.Contains(u.Error(), ", and ") || !strings.HasPrefix(u.Hint(), tt.hint) {
			t.Errorf("%s: %v, hint %q, want %q", name, u, u.Hint(), tt.hint)
		}
	}
	var rows strings.Builder
	rows.WriteString("id,code,a,b,half,same,label\n")
	for i := range 30 {
		fmt.Fprintf(&rows, "n%d,%d,%g,%g,%g,7,1\n", i, 1000-i, float64(i)/7, float64(i), float64(i)/2)
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(rows.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	u := Unclear(path, Options{Fields: []Field{floats("x", 2)}})
	if got := u.Identifiers(); !slices.Equal(got, []string{"id", "code", "b"}) { // b is an integer that differs in each row, too
		t.Errorf("identifiers %q", got)
	}
	if u := Unclear("missing.csv", Options{Fields: []Field{floats("x", 2)}}); u != nil {
		t.Error(u)
	}
}
