package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"

	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
)

// sameResult are the flags of a command that do not change its result, beside those of all commands.
var sameResult = map[string][]string{
	"":          {"threads", "memory", "quiet", "force", "ort-lib", "provider", "precision"},
	"score":     {"resume", "part", "batch-size", "posterior", "save-batch", "montage", "maps", "groups", "next-labels"},
	"sample":    {"store", "part"},
	"export":    {"check", "posterior"},
	"settle":    {"posterior"},
	"prepare":   {"batch-size"},
	"merge":     {"groups", "next-labels"},
	"compare":   {"store", "part", "report", "plots", "save"},
	"ood":       {"store", "part", "report", "plots"},
	"sweep":     {"store", "part", "report", "plots"},
	"geometry":  {"report", "plots"},
	"calibrate": {"save"},
	"fit":       {},
}

// severalPositions are scenes with several positions in an example. Formats hold different things of them.
var severalPositions = []string{"pixels", "tokens", "words", "states"}

// plain returns the line without the flags that guarantee the same result, or nil if it has none. near says that results may differ
// by rounding.
func (l *commandLine) plain() (plain *commandLine, near bool) {
	more, ok := sameResult[l.command]
	if !ok || l.has("estimate") || l.has("verbose") {
		return nil, false
	}
	guarantees := slices.Concat(sameResult[""], more)
	if l.has("json") { // it has the next commands, whose files are beside the report
		guarantees = slices.DeleteFunc(guarantees, func(flag string) bool { return flag == "report" || flag == "force" })
	}
	if l.has("on-error") { // a column for errors is not added to rows that are complete
		guarantees = slices.DeleteFunc(guarantees, func(flag string) bool { return flag == "resume" })
	}
	if by := l.guarantee("by"); by != "" && by != guarantee.ByClass { // thresholds are those of the groups that are given
		guarantees = slices.DeleteFunc(guarantees, func(flag string) bool { return flag == "groups" })
	}
	if l.scene.name == "tokens" || l.scene.name == "lists" { // batches are padded, and these networks see it
		guarantees = slices.DeleteFunc(guarantees, func(flag string) bool { return flag == "batch-size" })
	}
	plain = l.without(func(flag string) bool { return slices.Contains(guarantees, flag) })
	if len(plain.words) == len(l.words) {
		return nil, false
	}
	return plain, l.has("batch-size") && !plain.has("batch-size")
}

// guarantee returns a flag of calibrate with which the ensemble of the line was made to guarantee something, or "".
func (l *commandLine) guarantee(flag string) string {
	for k, flags := range l.scene.guarantees {
		if len(l.arguments) > 0 && l.arguments[0] == l.scene.guaranteed(k) {
			if i := slices.Index(flags, "--"+flag); i >= 0 {
				return flags[i+1]
			}
		}
	}
	return ""
}

// guaranteed runs the plain command of a line that has flags which guarantee the same result, and compares the results. Parts are
// merged before.
func (w *world) guaranteed(l *commandLine, o *outcome) (faults []string, err error) {
	plain, near := l.plain()
	if plain == nil {
		return nil, nil
	}
	got, fault, err := w.result(l, o)
	if err != nil || fault != "" {
		return []string{fault}, err
	}
	if err := w.restore(); err != nil {
		return nil, err
	}
	path := l.value("output")
	os.Remove(path) // the plain command has no --force
	os.Remove(path + summary.Suffix)
	if o, err = w.do(plain.args()); err != nil {
		return nil, err
	}
	if !o.succeeded() {
		return []string{fmt.Sprintf("rows: the plain command fails: %s: %s", plain, o.stderr)}, nil
	}
	want, _, err := w.result(plain, o)
	if err != nil {
		return nil, err
	}
	if fault := differ(path, got, want, near); fault != "" {
		return []string{fmt.Sprintf("rows: not those of %s: %s", plain, fault)}, nil
	}
	switch {
	case l.command != "score" || file.IsStdout(path):
		return nil, nil
	case filepath.Ext(path) == ".csv":
		return w.fewerColumns(plain, want)
	case slices.Contains(severalPositions, l.scene.name):
		return nil, nil
	}
	return w.otherFormat(plain, want)
}

// result returns what a command made: a file, or what it printed. It runs the other parts of a part.
func (w *world) result(l *commandLine, o *outcome) (b []byte, fault string, err error) {
	if i, n, ok := strings.Cut(l.value("part"), "/"); ok {
		of, _ := strconv.Atoi(n)
		last := l.without(func(flag string) bool { return flag == "part" })
		if l.command == "score" {
			last = &commandLine{scene: l.scene, command: "merge", words: []givenFlag{{flag: "output", value: l.value("output")}}}
			if _, old := w.first[l.value("output")]; old || l.has("force") {
				last.words = append(last.words, givenFlag{flag: "force", isSwitch: true})
			}
		}
		lines := []*commandLine{}
		for k := range of {
			if strconv.Itoa(k) != i {
				lines = append(lines, l.with("part", fmt.Sprintf("%d/%d", k, of)))
			}
		}
		for _, next := range append(lines, last) {
			if o, err = w.do(next.args()); err != nil {
				return nil, "", err
			}
			if !o.succeeded() {
				return nil, fmt.Sprintf("rows: a part succeeds, and then fails %s: %s", next, o.stderr), nil
			}
		}
	}
	if path := l.value("output"); path != "" && !file.IsStdout(path) {
		b, err = os.ReadFile(path)
		return b, "", err
	}
	return []byte(o.stdout), "", nil
}

// differ says how two results differ, or returns "". If they need only be near, their numbers are compared.
func differ(path string, got, want []byte, near bool) string {
	if bytes.Equal(got, want) {
		return ""
	}
	const rounding = 1e-4 // of float32, in entropies
	if near {
		a, err1 := rowNumbers(path, got)
		b, err2 := rowNumbers(path, want)
		return farFrom(a, b, rounding, errors.Join(err1, err2))
	}
	a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return fmt.Sprintf("line %d: %.200q, want %.200q", i, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
}

// wider are the flags of score that only add columns.
var wider = []string{"probs", "topk", "keep-members"}

// fewerColumns compares a table with the one that has fewer columns. What both have must be the same.
func (w *world) fewerColumns(plain *commandLine, got []byte) ([]string, error) {
	fewer := plain.without(func(flag string) bool { return slices.Contains(wider, flag) })
	settled := strings.Contains(plain.arguments[0], "settled") // kept members all run
	if plain.guarantee("coverage") != "" {                     // a guarantee adds columns
		fewer.arguments = append([]string{plain.scene.at("e.safetensors")}, plain.arguments[1:]...)
	} else if len(fewer.words) == len(plain.words) || settled && plain.has("keep-members") {
		return nil, nil
	}
	o, err := w.do(fewer.with("output", newFiles+"/fewer.csv").args())
	if err != nil {
		return nil, err
	}
	if !o.succeeded() {
		return []string{fmt.Sprintf("rows: the same with fewer columns fails: %s: %s", fewer, o.stderr)}, nil
	}
	rows, err := os.ReadFile(newFiles + "/fewer.csv")
	if err != nil {
		return nil, err
	}
	a, err1 := csv.NewReader(bytes.NewReader(got)).ReadAll()
	b, err2 := csv.NewReader(bytes.NewReader(rows)).ReadAll()
	if err := errors.Join(err1, err2); err != nil || len(a) != len(b) {
		return []string{fmt.Sprintf("rows: %d with more columns, and %d with fewer: %v", len(a), len(b), err)}, nil
	}
	for k, name := range b[0] {
		i := slices.Index(a[0], name)
		if i < 0 && plain.has("keep-members") && slices.Contains(a[0], strings.Replace(name, "gaussian", "mixture", 1)) {
			continue // docs/formats.md: with the members at hand the interval is that of their mixture
		}
		if i < 0 {
			return []string{fmt.Sprintf("rows: no column %s, which is there without the flags that only add columns", name)}, nil
		}
		for r := 1; r < len(a); r++ {
			if a[r][i] != b[r][k] {
				return []string{fmt.Sprintf("rows: row %d: %s is %s, and %s without the flags that only add columns", r-1, name, a[r][i], b[r][k])}, nil
			}
		}
	}
	return nil, nil
}

// otherFormat compares the numbers of a result with those of the same rows in CSV.
func (w *world) otherFormat(plain *commandLine, got []byte) ([]string, error) {
	format := filepath.Ext(plain.value("output"))
	text := plain.with("output", newFiles+"/text.csv")
	if format == ".npz" && !text.has("probs") {
		text.words = append(text.words, givenFlag{flag: "probs", isSwitch: true})
	}
	o, err := w.do(text.args())
	if err != nil {
		return nil, err
	}
	if !o.succeeded() {
		return []string{fmt.Sprintf("rows: the same in CSV fails: %s: %s", text, o.stderr)}, nil
	}
	rows, err := os.ReadFile(newFiles + "/text.csv")
	if err != nil {
		return nil, err
	}
	a, err1 := rowNumbers(format, got)
	b, err2 := rowNumbers(".csv", rows)
	if format == ".jsonl" { // JSON has no infinity
		for i := range b {
			b[i] = slices.DeleteFunc(b[i], func(x float64) bool { return math.IsInf(x, 0) })
		}
	}
	digits := 1e-8 // of text
	if plain.has("keep-members") {
		digits = 1e-6 // members are float32 in other formats
	}
	if fault := farFrom(a, b, digits, errors.Join(err1, err2)); fault != "" {
		return []string{"rows: " + format + " is not what CSV is: " + fault}, nil
	}
	return nil, nil
}

// farFrom says where numbers are further from each other than a tolerance.
func farFrom(a, b [][]float64, tolerance float64, err error) string {
	if err != nil {
		return err.Error()
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d rows, want %d", len(a), len(b))
	}
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return fmt.Sprintf("row %d: %d numbers, want %d", i, len(a[i]), len(b[i]))
		}
		slices.Sort(a[i]) // formats have other orders of columns
		slices.Sort(b[i])
		for k := range a[i] {
			if d := math.Abs(a[i][k] - b[i][k]); a[i][k] != b[i][k] && !(d <= tolerance*max(1, math.Abs(b[i][k]))) { // equal infinities too
				return fmt.Sprintf("row %d: %v, want %v", i, a[i][k], b[i][k])
			}
		}
	}
	return ""
}

// rowNumbers returns the numbers of each row of predictions.
func rowNumbers(path string, b []byte) (rows [][]float64, err error) {
	switch ext := filepath.Ext(path); ext {
	case ".npz":
		return npzNumbers(b)
	case ".parquet":
		return parquetNumbers(b)
	case ".jsonl":
		for text := range bytes.Lines(b) {
			var v map[string]any
			err = errors.Join(err, json.Unmarshal(text, &v))
			rows = append(rows, jsonNumbers(nil, v))
		}
		return rows, err
	}
	all, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	for _, record := range all[min(1, len(all)):] {
		var row []float64
		for k, cell := range record {
			if strings.HasSuffix(all[0][k], "name") {
				continue // a class may have the name "1"
			}
			numbers := []string{cell}
			if all[0][k] == task.SetColumn {
				numbers = strings.Fields(cell)
			}
			for _, text := range numbers {
				if x, err := strconv.ParseFloat(text, 64); err == nil {
					row = append(row, x)
				} else if yes, err := strconv.ParseBool(text); err == nil {
					row = append(row, targetOf(yes))
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, err
}

// jsonNumbers appends the numbers in a JSON value.
func jsonNumbers(to []float64, v any) []float64 {
	switch v := v.(type) {
	case float64:
		return append(to, v)
	case bool:
		return append(to, targetOf(v))
	case []any:
		for _, x := range v {
			to = jsonNumbers(to, x)
		}
	case map[string]any:
		for _, x := range v {
			to = jsonNumbers(to, x)
		}
	}
	return to
}

func targetOf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func parquetNumbers(b []byte) (rows [][]float64, err error) {
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	for _, group := range f.RowGroups() {
		r := group.Rows()
		defer r.Close()
		for buffer := make([]parquet.Row, 1); ; {
			n, err := r.ReadRows(buffer)
			for _, values := range buffer[:n] {
				var row []float64
				for _, v := range values {
					switch v.Kind() {
					case parquet.Boolean:
						row = append(row, targetOf(v.Boolean()))
					case parquet.Int32:
						row = append(row, float64(v.Int32()))
					case parquet.Int64:
						row = append(row, float64(v.Int64()))
					case parquet.Float:
						row = append(row, float64(v.Float()))
					case parquet.Double:
						row = append(row, v.Double())
					}
				}
				rows = append(rows, row)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// npzNumbers reads arrays whose first axis is that of the rows.
func npzNumbers(b []byte) (rows [][]float64, err error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	for _, entry := range z.File {
		r, err := entry.Open()
		if err != nil {
			return nil, err
		}
		npy, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		body := npy[10+int(binary.LittleEndian.Uint16(npy[8:])):]
		n, _ := strconv.Atoi(string(npyShape.FindSubmatch(npy)[1]))
		if rows == nil {
			rows = make([][]float64, n)
		}
		size := map[string]int{"<i8": 8, "<f8": 8, "<f4": 4, "<i4": 4, "|b1": 1}
		for dtype, size := range size {
			if !bytes.Contains(npy[:len(npy)-len(body)], []byte(dtype)) {
				continue
			}
			for i, each := 0, len(body)/size/n; i < n*each; i++ {
				var x float64
				switch v := body[i*size:]; dtype {
				case "|b1":
					if entry.Name == task.SetColumn+".npy" { // a mask of classes
						if v[0] != 0 {
							rows[i/each] = append(rows[i/each], float64(i%each))
						}
						continue
					}
					x = float64(v[0])
				case "<i8":
					x = float64(int64(binary.LittleEndian.Uint64(v)))
				case "<f8":
					x = math.Float64frombits(binary.LittleEndian.Uint64(v))
				case "<f4":
					x = float64(math.Float32frombits(binary.LittleEndian.Uint32(v)))
				case "<i4":
					x = float64(int32(binary.LittleEndian.Uint32(v)))
				}
				rows[i/each] = append(rows[i/each], x)
			}
		}
	}
	return rows, nil
}
