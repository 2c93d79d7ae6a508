package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWindow: five checkpoints of eight predict the opposite of the labels. compare prints the command that leaves them out, and
// try does so. Its posterior is that of fit --last. Where all checkpoints are alike nothing changes.
func TestWindow(t *testing.T) {
	t.Parallel()
	const tokens, wrong = 12, 5
	model, err := os.ReadFile(filepath.Join("testdata", "first-1.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(model, []byte{9<<3 | 2, 4 * 2 * tokens}) // the logits of each token: field 9, raw_data, with their length
	if at < 0 {
		t.Fatal("no tensor of logits")
	}
	at += 2
	dir, r := t.TempDir(), rand.New(rand.NewPCG(7, 2))
	out := func(name string) string { return filepath.Join(dir, name) }
	var logits [2 * tokens]float64
	for i := range logits {
		logits[i] = 1.5 * r.NormFloat64()
	}
	checkpoints := func(run string, opposite int) string {
		if err := os.Mkdir(out(run), 0o777); err != nil {
			t.Fatal(err)
		}
		for epoch := range 8 {
			file := bytes.Clone(model)
			for i, v := range logits {
				if epoch < opposite {
					v = -v
				}
				binary.LittleEndian.PutUint32(file[at+4*i:], math.Float32bits(float32(v+0.3*r.NormFloat64())))
			}
			if err := os.WriteFile(filepath.Join(out(run), fmt.Sprintf("epoch-%d.onnx", epoch)), file, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return out(run)
	}
	examples := func(name string, n int) string {
		var b strings.Builder
		for range n {
			token, label := r.IntN(tokens), 0
			if r.Float64() < 1/(1+math.Exp(logits[2*token]-logits[2*token+1])) {
				label = 1
			}
			fmt.Fprintf(&b, "{\"ids\": [%d], \"label\": %d}\n", token, label)
		}
		if err := os.WriteFile(out(name), []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return out(name)
	}
	run := func(args ...string) string {
		t.Helper()
		code, printed := program(t, args...)
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
		return strings.Join(strings.Fields(printed), " ")
	}
	same := func(a, b string) {
		t.Helper()
		x, err := os.ReadFile(out(a))
		y, also := os.ReadFile(out(b))
		if err != nil || also != nil || !bytes.Equal(x, y) {
			t.Errorf("%s and %s differ, or %v, %v", a, b, err, also)
		}
	}
	val, test := examples("val.jsonl", 200), examples("test.jsonl", 200)
	turned, alike := checkpoints("turned", wrong), checkpoints("alike", 0)
	const prefer = "200 validation examples prefer the last 3 of 8 checkpoints to all of them: NLL −0."

	all := out("all.safetensors")
	run("fit", "--task", "classes", "-o", all, turned)
	printed := run("compare", "-n", "2", "--val", val, all, test)
	command := " fit --last 3 -o NEW.safetensors " + all
	if strings.Count(printed, prefer) != 2 || strings.Count(printed, command) != 1 { // in the log, and below the table
		t.Errorf("compare: %s", printed)
	}
	run(strings.Fields(strings.ReplaceAll(command, "NEW", out("last")))...)
	if printed := run("compare", "-n", "2", "--methods", "swa", "--val", val, all, test); strings.Contains(printed, prefer) {
		t.Errorf("--methods: %s", printed)
	}
	if printed := run("compare", "-n", "2", all, test); strings.Contains(printed, "prefer") {
		t.Errorf("no labels choose: %s", printed)
	}

	printed = run("try", "-o", out("result"), "-n", "2", "--val", val, turned, test)
	if strings.Count(printed, prefer) != 1 || !strings.Contains(printed, "They are taken (--last 3)") || strings.Count(printed, "posterior over 24 weights from 3 checkpoints") != 1 {
		t.Errorf("try: %s", printed)
	}
	script, err := os.ReadFile(out("result/commands.sh"))
	if err != nil || strings.Count(string(script), " fit ") != 1 || !strings.Contains(string(script), " --last 3 ") || strings.Count(string(script), " compare ") != 1 {
		t.Errorf("commands: %s, %v", script, err)
	}
	run("fit", "--task", "classes", "--last", "3", "-o", out("result/last.safetensors"), turned) // paths are relative to the folder
	same("result/posterior.safetensors", "result/last.safetensors")
	printed = run("try", "-o", out("chosen"), "-n", "2", "--last", "8", "--val", val, turned, test)
	table, err := os.ReadFile(out("chosen/table.txt"))
	if err != nil || !strings.Contains(string(table), "NEW.safetensors") || strings.Count(printed, "posterior over 24 weights") != 1 {
		t.Errorf("the user chose: %s, %s, %v", printed, table, err)
	}

	run("fit", "-q", "--task", "classes", "-o", out("alike.safetensors"), alike)
	printed = run("compare", "-n", "2", "--val", val, out("alike.safetensors"), test)
	const keep = "200 validation examples show no average that is better than that of all 8 checkpoints."
	if strings.Count(printed, keep) != 1 {
		t.Errorf("alike: %s", printed)
	}
	printed = run("try", "-o", out("plain"), "-n", "2", "--val", val, alike, test)
	if strings.Contains(printed, "prefer the") || strings.Count(printed, "posterior over 24 weights") != 1 {
		t.Errorf("alike: %s", printed)
	}
}
