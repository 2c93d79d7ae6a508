package main

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
)

// tables makes the options of each command, with the table that fills them.
var tables = map[string]func() (options any, table flags.Table){
	"calibrate": func() (any, flags.Table) { o := new(calibrateOptions); return o, o.rows() },
	"compare":   func() (any, flags.Table) { o := new(compareOptions); return o, o.rows() },
	"export":    func() (any, flags.Table) { o := new(exportOptions); return o, o.rows() },
	"fit":       func() (any, flags.Table) { o := new(fitOptions); return o, o.rows() },
	"geometry":  func() (any, flags.Table) { o := new(geometryOptions); return o, o.rows() },
	"ood":       func() (any, flags.Table) { o := new(oodOptions); return o, o.rows() },
	"prepare":   func() (any, flags.Table) { o := new(prepareOptions); return o, o.rows() },
	"sample":    func() (any, flags.Table) { o := new(sampleOptions); return o, o.rows() },
	"score":     func() (any, flags.Table) { o := new(scoreOptions); return o, o.rows() },
	"settle":    func() (any, flags.Table) { o := new(settleOptions); return o, o.rows() },
	"sweep":     func() (any, flags.Table) { o := new(sweepOptions); return o, o.rows() },
	"try":       func() (any, flags.Table) { o := new(tryOptions); return o, o.rows() },
}

// values are texts. Each flag takes some of them.
var values = strings.Fields("0 1 2 3 11 -1 0.5 0x10 1e-3 1e2 -0 .25 90% 10% a,b a=b NAME=parameter x=1,y=2 h0=hn@1 0.001,99% 0,5,20 512,64 " +
	"4G 500M 1/3 head=none rows=2 blocks=512 val=l.csv test=t.csv f1 recall=0.9 risk=0.01 swa,swag all common " +
	"true false auto given ask keep drop labels classes regression final reference folded pipe none pixels seen names numbers lac int8 int8,external " +
	"f16 bf16,measured openvino cuda skip original main logits text npy=maps off accuracy=95.3%,loss=0.2011,n=5000 fail warn independent")

// A table goes both ways: what a command line fills into the options is what the options' own words fill in again.
func TestTableGoesBothWays(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 68))
	for name, fresh := range tables {
		texts := map[string][]string{}
		for _, text := range values {
			_, probe := fresh()
			for _, row := range probe {
				if row.Set(text); (flags.Table{row}).Check() == nil {
					texts[row.Name] = append(texts[row.Name], text)
				}
			}
		}
		for range 200 {
			first, typed := fresh()
			var names []string
			for _, row := range typed {
				names = append(names, row.Name)
				if len(texts[row.Name]) == 0 {
					t.Fatalf("%s --%s: takes none of the values", name, row.Name)
				}
				if r.IntN(4) == 0 {
					row.Set(pick(r, texts[row.Name]))
				}
			}
			if err := typed.Check(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			words := typed.Words(names...)
			second, again := fresh()
			for _, row := range again {
				row.Then = nil
			}
			if _, err := again.Parse(words); err != nil {
				t.Fatalf("%s %q: %v", name, words, err)
			}
			if repeated := again.Words(names...); !slices.Equal(words, repeated) {
				t.Fatalf("%s %q: is spelled %q the second time", name, words, repeated)
			}
			table := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[flags.Table]() }, cmp.Ignore())
			if diff := cmp.Diff(first, second, table, ignoreFuncs,
				cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Fatalf("%s %q (- first, + again):\n%s", name, words, diff)
			}
		}
	}
}

// ignoreFuncs leaves out functions, which are not of a command line.
var ignoreFuncs = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != nil && p.Last().Type().Kind() == reflect.Func }, cmp.Ignore())

// What says how members are made, spelled by a step, makes the same members.
func TestMembersGoBothWays(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 68))
	for range 500 {
		o := new(sampleOptions)
		words := []string{"--method", pick(r, ensemble.Methods)}
		for flag, values := range map[string][]string{"scale": {"0", "0.125", "2"}, "rank": {"0", "5"}, "members": {"2", "30"}, "seed": {"1", "18446744073709551615"},
			"temperature": {"1.5"}, "noise-std": {"0.5"}, "threshold": {"0.25"}} {
			if r.IntN(3) == 0 {
				words = append(words, "--"+flag, pick(r, values))
			}
		}
		if _, err := o.rows().Parse(words); err != nil {
			continue
		}
		again := new(sampleOptions)
		spelled := flags.Members(o.settings.Settings)
		if _, err := again.rows().Parse(spelled); err != nil {
			t.Fatalf("%q: %q: %v", words, spelled, err)
		}
		if o.settings.Checkpoints() { // nothing is drawn
			again.settings.Seed = o.settings.Seed
		}
		if !reflect.DeepEqual(o.settings, again.settings) {
			t.Errorf("%q: %+v\n%q: %+v", words, o.settings, spelled, again.settings)
		}
	}
}
