// Package arch contains only tests. They check which packages each layer of the program may import.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module  = "github.com/swagwrap/swagwrap"
	binding = "github.com/yalue/onnxruntime_go"
	cli     = "github.com/urfave/cli"
)

// A rule says what one package may import. An import path also covers the packages below it.
type rule struct {
	own   []string // packages of this module
	third []string // other modules; nil allows any that is not forbidden
	never []string // standard packages it must not import
	pure  bool     // no cgo, in the package or in anything it needs
}

var (
	none   = []string{}
	public = []string{"weights", "weights/statefile", "onnxio", "onnxio/checkpoints", "onnxio/fused", "swag", "swag/trajectory", "swag/geometry", "bnupdate", "calibrate", "calibrate/chance", "calibrate/detect", "calibrate/expect", "calibrate/regression", "calibrate/multilabel", "calibrate/sets", "calibrate/shares"}
	// Each package may import those before it.
	data   = []string{"internal/word", "internal/setting", "internal/tally", "internal/target", "internal/memory", "internal/file", "internal/csvsafe", "internal/numpy", "internal/names", "internal/picture", "internal/augment", "internal/preprocess", "internal/dataset", "internal/dataset/fileorder", "internal/dataset/filelist", "internal/dataset/groups", "internal/dataset/keys", "internal/dataset/listing", "internal/dataset/masks", "internal/dataset/table", "internal/dataset/text"}
	models = slices.Concat(public, data, []string{"internal/moments", "internal/ort", "internal/task", "internal/guarantee", "internal/records"})
	files  = append(slices.Clone(models), "internal/infer", "internal/infer/store", "internal/infer/probe", "internal/infer/rounding", "internal/infer/batchnorm", "internal/predictions")
	// What computes numbers knows no tables, figures and texts.
	numbers = append(slices.Clone(files), "internal/ensemble", "internal/baseline")
	runs    = append(slices.Clone(numbers), "internal/report", "internal/report/plot", "internal/report/text")
	tables  = append(slices.Clone(runs), "internal/study")
	opened  = append(slices.Clone(tables), "internal/statedict", "internal/kind", "internal/averages", "internal/progress", "internal/programs", "internal/reference", "internal/printed", "internal/study/diagnosis", "internal/study/summary", "internal/open")
)

// rules is the table of the design. A new package must be listed.
var rules = map[string]rule{
	"weights":              {own: []string{"internal/file"}, third: []string{"golang.org/x/sys"}, pure: true},
	"weights/statefile":    {own: []string{"weights", "internal/file"}, third: none, pure: true},
	"onnxio/internal/wire": {own: none, third: []string{"google.golang.org/protobuf/encoding/protowire"}, pure: true},
	"onnxio":               {own: []string{"weights", "onnxio/internal/wire"}, third: none, pure: true},
	"onnxio/checkpoints":   {own: []string{"internal/setting", "weights", "weights/statefile", "onnxio", "swag"}, third: []string{"golang.org/x/sync"}, pure: true},
	"onnxio/fused":         {own: []string{"weights", "onnxio", "onnxio/internal/wire"}, third: none, pure: true},
	"swag/internal/dense":  {own: none, third: []string{"gonum.org/v1/gonum"}, pure: true},
	"swag":                 {own: []string{"weights", "swag/internal/dense", "internal/splitmix"}, third: []string{"gonum.org/v1/gonum", "golang.org/x/sync", "golang.org/x/sys/cpu"}, pure: true},
	"swag/trajectory":      {own: []string{"internal/setting", "weights", "swag", "swag/internal/dense"}, third: []string{"gonum.org/v1/gonum"}, pure: true},
	"swag/geometry":        {own: []string{"weights", "swag", "swag/internal/dense"}, third: []string{"gonum.org/v1/gonum"}, pure: true},
	"bnupdate":             {own: []string{"weights", "onnxio"}, third: []string{"golang.org/x/sync"}, pure: true},
	"internal/moments":     {own: none, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io"}, pure: true},
	"internal/splitmix":    {own: none, third: none, pure: true},
	"calibrate":            {own: []string{"internal/splitmix", "calibrate/chance"}, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/chance":     {own: none, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/detect":     {own: []string{"internal/word", "calibrate/chance"}, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/regression": {own: []string{"internal/word", "calibrate"}, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/expect":     {own: []string{"internal/splitmix"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/shares":     {own: none, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/sets":       {own: none, third: none, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},
	"calibrate/multilabel": {own: []string{"calibrate", "calibrate/detect"}, third: []string{"gonum.org/v1/gonum"}, never: []string{"os", "net", "io", "bufio", "path/filepath"}, pure: true},

	"internal/word":                 {own: none, third: none, pure: true},
	"internal/setting":              {own: none, third: none, pure: true},
	"internal/averages":             {own: none, third: none, never: []string{"os", "net", "io"}, pure: true},
	"internal/tally":                {own: none, third: none, pure: true},
	"internal/memory":               {own: none, third: []string{"golang.org/x/sys/unix"}, pure: true},
	"internal/progress":             {own: none, third: []string{"github.com/maruel/natural"}, pure: true},
	"internal/step":                 {own: none, third: none, pure: true},
	"internal/tempfile":             {own: []string{"internal/file", "internal/step"}, third: []string{"golang.org/x/sys/unix"}, pure: true},
	"internal/ort":                  {own: []string{"internal/setting", "onnxio", "weights", "internal/file", "internal/memory", "internal/tempfile"}},
	"internal/packages":             {own: []string{"internal/tempfile"}, third: none, pure: true},
	"internal/csvsafe":              {own: none, third: none, pure: true},
	"internal/target":               {own: []string{"internal/setting"}, third: none, pure: true},
	"internal/file":                 {own: none, third: none, pure: true},
	"internal/numpy":                {own: []string{"internal/target", "internal/file", "weights"}, third: none, pure: true},
	"internal/names":                {own: []string{"internal/setting", "internal/numpy", "internal/word"}, third: []string{"golang.org/x/text"}, pure: true},
	"internal/picture/jpeg":         {own: none, third: none, pure: true},
	"internal/picture":              {own: []string{"internal/word", "internal/file", "internal/picture/jpeg"}, third: []string{"golang.org/x/image"}, pure: true},
	"internal/augment":              {own: []string{"internal/setting", "internal/word", "internal/file", "internal/picture"}, pure: true},
	"internal/corrupt":              {own: []string{"internal/setting", "internal/file", "internal/picture", "internal/splitmix", "internal/word"}, third: []string{"gonum.org/v1/gonum"}, pure: true},
	"internal/preprocess":           {own: []string{"internal/setting", "internal/word", "internal/file", "internal/picture"}, third: none, pure: true},
	"internal/dataset/fileorder":    {own: []string{"internal/setting", "internal/word"}, third: none, pure: true},
	"internal/dataset/filelist":     {own: []string{"internal/setting", "internal/file", "internal/dataset/fileorder", "internal/dataset/table"}, third: none},
	"internal/dataset/listing":      {own: []string{"internal/setting", "internal/target", "internal/names", "internal/dataset/filelist", "internal/dataset/fileorder", "internal/dataset/table", "internal/file", "internal/memory", "internal/csvsafe", "internal/numpy", "internal/picture", "internal/tempfile"}},
	"internal/dataset/groups":       {own: []string{"internal/dataset/keys", "internal/dataset/table"}},
	"internal/dataset/keys":         {own: []string{"internal/names", "internal/dataset/fileorder", "internal/dataset/listing", "internal/dataset/table"}},
	"internal/dataset/masks":        {own: []string{"internal/setting", "internal/dataset/listing", "internal/file", "internal/numpy", "internal/picture", "internal/preprocess", "internal/target"}, third: none},
	"internal/dataset/table":        {own: []string{"weights", "internal/names", "internal/dataset/fileorder", "internal/file", "internal/csvsafe", "internal/tempfile"}},
	"internal/dataset/text":         {own: []string{"internal/word"}, third: none, pure: true},
	"internal/tokenizer/pattern":    {third: none, pure: true},
	"internal/tokenizer":            {own: []string{"internal/dataset/text", "internal/tokenizer/pattern"}, third: []string{"golang.org/x/text"}, pure: true},
	"internal/dataset":              {own: []string{"internal/setting", "weights", "internal/names", "internal/word", "internal/target", "internal/dataset/fileorder", "internal/dataset/keys", "internal/dataset/listing", "internal/dataset/masks", "internal/dataset/table", "internal/dataset/text", "internal/file", "internal/memory", "internal/numpy", "internal/picture", "internal/augment", "internal/preprocess", "internal/tempfile"}},
	"internal/task":                 {own: []string{"internal/setting", "internal/word", "internal/target", "calibrate", "calibrate/chance", "calibrate/detect", "calibrate/expect", "calibrate/regression", "calibrate/multilabel", "calibrate/shares"}, pure: true},
	"internal/guarantee":            {own: []string{"internal/setting", "internal/target", "internal/task", "calibrate", "calibrate/chance", "calibrate/sets", "onnxio/fused"}, third: []string{"gonum.org/v1/gonum"}, pure: true},
	"internal/predictions":          {own: []string{"calibrate", "internal/setting", "internal/dataset/table", "internal/target", "internal/word", "weights", "internal/file", "internal/csvsafe", "internal/numpy", "internal/task", "internal/tempfile", "internal/records"}},
	"internal/records":              {own: []string{"weights", "internal/file", "internal/step"}, third: none, pure: true},
	"internal/infer/store":          {own: []string{"internal/file", "internal/step", "internal/tempfile", "internal/records"}, third: none, pure: true},
	"internal/infer":                {own: append(slices.Clone(models), "internal/infer/store")},
	"internal/infer/probe":          {own: append(slices.Clone(models), "internal/infer", "internal/infer/store", "internal/splitmix")},
	"internal/infer/rounding":       {own: append(slices.Clone(models), "internal/infer", "internal/infer/store", "internal/infer/probe", "internal/splitmix")},
	"internal/infer/batchnorm":      {own: append(slices.Clone(models), "internal/infer", "internal/infer/store", "internal/infer/probe", "internal/infer/rounding")},
	"fixtures/infertest":            {own: append(slices.Clone(models), "internal/infer", "internal/infer/store", "internal/infer/probe", "internal/infer/rounding", "internal/infer/batchnorm")},
	"internal/ensemble":             {own: files},
	"internal/statedict":            {own: append(slices.Clone(files), "internal/ensemble", "weights/statefile")},
	"internal/webpage/inputs":       {own: []string{"weights", "internal/dataset/table", "internal/file", "internal/picture", "internal/preprocess"}, pure: true},
	"internal/webpage":              {own: []string{"internal/preprocess", "internal/webpage/inputs"}, pure: true},
	"internal/hub":                  {own: append(slices.Clone(files), "internal/ensemble")},
	"internal/baseline":             {own: append(slices.Clone(files), "internal/ensemble", "internal/tempfile")},
	"internal/report":               {own: []string{"internal/report/plot", "internal/report/text"}, never: []string{"C"}},
	"internal/report/plot":          {own: []string{"calibrate", "calibrate/chance", "calibrate/detect", "internal/report/text"}, third: []string{"gonum.org/v1/plot", "golang.org/x/image/font"}, pure: true},
	"internal/report/text":          {own: none, third: none, pure: true},
	"internal/maps":                 {own: []string{"internal/numpy", "internal/task"}, pure: true},
	"internal/montage":              {own: []string{"internal/report/text", "internal/task"}, third: []string{"golang.org/x/image"}, pure: true},
	"internal/reference":            {own: []string{"calibrate", "internal/file", "internal/numpy", "internal/ort", "internal/preprocess", "internal/setting", "internal/splitmix", "internal/tally", "onnxio", "weights"}, third: []string{"google.golang.org/protobuf/encoding/protowire"}},
	"internal/printed":              {own: append(slices.Clone(numbers), "internal/reference")},
	"internal/study":                {own: runs},
	"internal/study/shift":          {own: []string{"internal/corrupt", "internal/word", "internal/dataset", "internal/memory", "internal/picture", "internal/splitmix", "internal/target"}, pure: true},
	"internal/study/compare":        {own: append(slices.Clone(numbers), "internal/study")},
	"internal/study/compare/show":   {own: append(slices.Clone(tables), "internal/study/compare")},
	"internal/study/diagnosis":      {own: tables},
	"internal/study/calibration":    {own: tables},
	"internal/study/settling":       {own: tables},
	"internal/study/conversion":     {own: append(slices.Clone(tables), "internal/study/calibration")},
	"internal/study/summary":        {own: tables},
	"internal/kind":                 {own: append(slices.Clone(tables), "internal/study/summary")},
	"internal/programs":             {own: append(slices.Clone(tables), "internal/study/summary", "internal/kind", "internal/averages", "internal/progress")},
	"internal/open":                 {own: opened},
	"internal/study/ood":            {own: tables},
	"internal/study/sweep":          {own: tables},
	"internal/study/landscape":      {own: tables},
	"internal/arch":                 {own: none},
	"fixtures/mnist":                {own: none, third: none, pure: true},
	"fixtures/testfile":             {own: none, third: []string{"github.com/google/go-cmp"}, pure: true},
	"fixtures/reliability":          {own: none, third: none, pure: true},
	"fixtures/reliability/forge":    {own: []string{"weights", "fixtures/reliability"}, third: none, pure: true},
	"fixtures/screen":               {own: []string{"internal/report", "internal/study"}},
	"cmd/swagwrap/internal/flags":   {own: append(slices.Clone(opened), "internal/tokenizer", "cmd/swagwrap/internal/console")},
	"cmd/swagwrap/internal/console": {own: append(slices.Clone(opened), "internal/tokenizer", "internal/step", "internal/tempfile", "cmd/swagwrap/internal/stdio")},
	"cmd/swagwrap/internal/stdio":   {own: none, third: none},
	"cmd/swagwrap/internal/shell":   {own: []string{"internal/word", "cmd/swagwrap/internal/console", "cmd/swagwrap/internal/flags"}},
	"cmd/swagwrap":                  {own: append(slices.Clone(opened), "internal/packages", "internal/hub", "internal/webpage", "internal/webpage/inputs", "internal/maps", "internal/montage", "internal/tempfile", "cmd/swagwrap/internal/describe", "cmd/swagwrap/internal/console", "cmd/swagwrap/internal/flags", "cmd/swagwrap/internal/shell", "internal/study/compare", "internal/study/compare/show", "internal/study/shift", "internal/study/ood", "internal/study/sweep", "internal/study/landscape", "internal/study/calibration", "internal/study/conversion", "internal/study/settling", "fixtures/mnist")},
	"fixtures/bench/measure":        {own: []string{"internal/report"}, pure: true},
	"fixtures/bench/benchtest":      {own: []string{"fixtures/bench/measure"}, pure: true},
	"fixtures/bench/fit":            {own: []string{"internal/splitmix", "weights", "onnxio", "onnxio/checkpoints", "swag", "internal/report", "fixtures/bench/measure"}, pure: true},
	"fixtures/bench/score":          {own: append(slices.Clone(files), "internal/ensemble", "internal/report", "fixtures/bench/measure")},
	"fixtures/bench":                {own: []string{"fixtures/bench/fit", "fixtures/bench/score", "fixtures/bench/measure"}},
	"fixtures/results":              {own: []string{"calibrate", "calibrate/chance", "internal/numpy", "internal/predictions", "internal/report", "fixtures/bench/measure"}, pure: true},
	"fixtures/expect/damage":        {own: []string{"internal/corrupt", "internal/numpy", "internal/picture"}, pure: true},
	"fixtures/results/damage":       {own: []string{"internal/corrupt", "internal/numpy", "internal/picture"}, pure: true},
	"fixtures/large":                {own: []string{"internal/splitmix"}, third: none, pure: true},
	"fixtures/cluster/simulate":     {own: none, third: none, pure: true},

	"cmd/swagwrap/internal/describe": {own: append(slices.Clone(opened), "internal/hub", "internal/study/calibration", "internal/study/settling", "cmd/swagwrap/internal/console", "cmd/swagwrap/internal/flags")},
}

// Libraries never log, print or exit. Flags belong to the program.
var onlyInProgram = []string{cli, "log", "flag"}

// pkg is a package, as go list prints it.
type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

// violations applies the rules to the packages of a build.
func violations(rules map[string]rule, pkgs []pkg) []string {
	byPath := map[string]pkg{}
	for _, p := range pkgs {
		byPath[p.ImportPath] = p
	}
	var bad []string
	for _, p := range pkgs {
		name, ok := strings.CutPrefix(p.ImportPath, module+"/")
		if !ok {
			continue
		}
		r, ok := rules[name]
		if !ok {
			bad = append(bad, fmt.Sprintf("%s: not in the table of packages", name))
			continue
		}
		for _, imp := range p.Imports {
			if why := r.refuses(name, imp, byPath[imp].Standard); why != "" {
				bad = append(bad, fmt.Sprintf("%s imports %s: %s", name, imp, why))
			}
		}
		if r.pure {
			for _, dep := range append(slices.Clone(p.Deps), p.ImportPath) {
				if d := byPath[dep]; !d.Standard && slices.Contains(d.Imports, "C") {
					bad = append(bad, fmt.Sprintf("%s needs cgo: %s", name, dep))
				}
			}
		}
	}
	return bad
}

// refuses returns the reason why the package must not import imp, or "".
func (r rule) refuses(name, imp string, standard bool) string {
	own, isOwn := strings.CutPrefix(imp, module+"/")
	switch {
	case within(imp, []string{binding}) && name != "internal/ort":
		return "only internal/ort may"
	case within(imp, onlyInProgram) && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "fixtures/"):
		return "only programs may"
	case within(imp, r.never):
		return "forbidden here"
	case isOwn && !slices.Contains(r.own, own):
		return "the arrow points up"
	case !isOwn && !standard && imp != "C" && r.third != nil && !within(imp, r.third):
		return "not among the modules it may use"
	}
	return ""
}

// within reports whether path is one of the given paths or below one of them.
func within(path string, of []string) bool {
	return slices.ContainsFunc(of, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

// listed has the packages of the module and all that they need.
func listed(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

var listOnce = sync.OnceValues(func() (pkgs []pkg, err error) {
	// Without cgo, go list would not show the imports of "C".
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard", module+"/...")
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
})

func TestImports(t *testing.T) {
	for _, v := range violations(rules, listed(t)) {
		t.Error(v)
	}
}

// The code for browsers has no folder for temporary files. It is compiled for releases alone, so a test of every day looks.
func TestPage(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-tags", "noparquet", module+"/internal/webpage/inputs/wasm")
	list.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, module+"/internal/dataset/table") {
		t.Fatalf("no tables among %d packages", len(packages))
	}
	for _, name := range []string{"tempfile", "ort"} {
		if slices.Contains(packages, module+"/internal/"+name) {
			t.Errorf("the code for browsers imports internal/%s, which does not compile for it", name)
		}
	}
}

// The rules can fail. Each of these packages breaks one rule.
func TestViolations(t *testing.T) {
	tests := []struct {
		name    string
		imports []string
		want    string
	}{
		{"weights", []string{"fmt", "golang.org/x/sys/unix"}, ""},
		{"weights", []string{module + "/onnxio"}, "the arrow points up"},
		{"weights", []string{"gonum.org/v1/gonum/mat"}, "not among the modules"},
		{"weights", []string{"C"}, "needs cgo: " + module + "/weights"},
		{"swag", []string{module + "/weights", "gonum.org/v1/gonum/mat"}, ""},
		{"swag", []string{module + "/onnxio"}, "the arrow points up"},
		{"swag", []string{"log/slog"}, "only programs may"},
		{"weights/statefile", []string{module + "/weights", "fmt"}, ""},
		{"weights/statefile", []string{module + "/onnxio"}, "the arrow points up"},
		{"onnxio", []string{module + "/native"}, "needs cgo: " + module + "/native"},
		{"onnxio", []string{module + "/onnxio/checkpoints"}, "the arrow points up"},
		{"onnxio/checkpoints", []string{module + "/onnxio", module + "/weights"}, ""},
		{"onnxio", []string{"google.golang.org/protobuf/encoding/protowire"}, "not among the modules"},
		{"swag", []string{module + "/swag/trajectory"}, "the arrow points up"},
		{"bnupdate", []string{module + "/internal/ort"}, "the arrow points up"},
		{"calibrate", []string{"gonum.org/v1/gonum/stat"}, ""},
		{"calibrate", []string{"io/fs"}, "forbidden here"},
		{"calibrate", []string{module + "/calibrate/multilabel"}, "the arrow points up"},
		{"calibrate/regression", []string{module + "/calibrate", "os"}, "forbidden here"},
		{"internal/ort", []string{binding, module + "/onnxio"}, ""},
		{"internal/ort", []string{cli + "/v2"}, "only programs may"},
		{"internal/ensemble", []string{module + "/internal/ort", "github.com/sbinet/npyio"}, ""},
		{"internal/picture", []string{module + "/internal/dataset"}, "the arrow points up"},
		{"internal/dataset", []string{module + "/internal/augment", module + "/internal/picture"}, ""},
		{"internal/augment", []string{module + "/internal/dataset"}, "the arrow points up"},
		{"internal/ensemble", []string{binding}, "only internal/ort may"},
		{"internal/ensemble", []string{module + "/cmd/swagwrap"}, "the arrow points up"},
		{"internal/report", []string{module + "/swag"}, "the arrow points up"},
		{"cmd/swagwrap", []string{cli + "/v2", module + "/internal/report", "log"}, ""},
		{"cmd/swagwrap", []string{binding}, "only internal/ort may"},
		{"fixtures/bench/fit", []string{"flag", module + "/swag"}, ""},
		{"fixtures/bench/fit", []string{module + "/cmd/swagwrap"}, "the arrow points up"},
		{"util", nil, "not in the table"},
	}
	for _, tt := range tests {
		p := pkg{ImportPath: module + "/" + tt.name, Imports: tt.imports, Deps: tt.imports}
		pkgs := []pkg{p, {ImportPath: "github.com/sbinet/npyio"}}
		for _, std := range []string{"flag", "fmt", "io/fs", "log", "log/slog"} {
			pkgs = append(pkgs, pkg{ImportPath: std, Standard: true})
		}
		with := map[string]rule{"native": {}}
		for name, r := range rules {
			with[name] = r
		}
		pkgs = append(pkgs, pkg{ImportPath: module + "/native", Imports: []string{"C"}})
		got := strings.Join(violations(with, pkgs), "; ")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s imports %v: %q, want %q", tt.name, tt.imports, got, tt.want)
		}
	}
}
