package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
)

// Reference outputs of PyTorch, of testdata/reference/make.py: right ones prove the network, and all others end fit, with their
// cause. None passes.
func TestParity(t *testing.T) {
	t.Parallel()
	from := filepath.Join("testdata", "reference")
	for _, tc := range []struct {
		file, want string // part of what is printed; fit goes on if it begins with "parity"
	}{
		{"right.npz", "parity: 3 of 3 checkpoints, largest difference "},
		{"three-lines.npz", "parity: 1 of 3 checkpoints, "},
		{"unnamed.npz", "parity: 1 of 3 checkpoints, "},
		{"bfloat16.npz", "parity: 3 of 3 checkpoints, "},
		{"coarse.npz", "parity: 3 of 3 checkpoints, "},
		{"zoo", "parity: the exported graph, "},
		{"elsewhere.npz", "parity not checked: its outputs are of other/net.pt"},
		{"ema.npz", "cause found: these are the outputs of ema_state_dict in"},
		{"epoch-before.npz", "cause found: these are the outputs of "},
		{"training-mode.npz", "cause found: these are the outputs in training mode"},
		{"bgr.npz", "BGR instead of RGB"},
		{"channels-last.npz", "the inputs have their channels last, and the graph takes them first"},
		{"sides.npz", "two axes of the inputs are exchanged"},
		{"normalised.npz", "the network normalised its inputs, and the graph does not: mean and standard deviation of ImageNet"},
		{"normalised-twice.npz", "the graph normalises its inputs once more than the network did: mean and standard deviation of ImageNet"},
		{"softmax.npz", "the reference outputs are behind softmax"},
		{"log-softmax.npz", "the reference outputs are behind log-softmax"},
		{"examples.npz", "in another order: number 0 is that of example 1"},
		{"classes.npz", "number 0 of the reference outputs is number 2 of the graph"},
		{"other-output.npz", `the numbers of the output "aux", not of "logits"`},
		{"scaled.npz", "no cause found"},
		{"bfloat16-unsaid.npz", "no cause found"},
		{"no-input.npz", `no array for the graph's input "x", want one of this name, or inputs.0: it has "outputs", "y"`},
		{"shape.npz", `array "inputs": shape [5 6 6], want [batch 3 6 6] as the graph's input "x" has`},
	} {
		t.Run(tc.file, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "posterior")
			code, out := fitReference(t, path, "--reference", filepath.Join(from, tc.file), from)
			if out = strings.Join(strings.Fields(out), " "); !strings.Contains(out, tc.want) {
				t.Errorf("%s, want %s", out, tc.want)
			}
			_, err := os.Stat(path)
			if right := strings.HasPrefix(tc.want, "parity"); right != (code == 0) || right != (err == nil) || !right && code != 65 {
				t.Errorf("exit code %d, and of the posterior %v: %s", code, err, out)
			}
		})
	}
}

// fitReference fits the checkpoints of testdata/reference.
func fitReference(t *testing.T, posterior string, args ...string) (code int, out string) {
	var both bytes.Buffer
	args = append([]string{"swagwrap", "fit", "--task", "classes", "--output-name", "logits", "--state-dict", "state_dict", "--template",
		filepath.Join("testdata", "reference", "model.onnx"), "-o", posterior}, args...)
	return run(t.Context(), args, &both, &both), both.String()
}

// Without a flag, a file in the folder of the checkpoints is found. The model card keeps the result, also that of --parity off.
func TestParityFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file, want, card string
		args             []string
		code             int
	}{
		{"right.npz", "parity: 3 of 3", "3 of 3 checkpoints", nil, 0},
		{"ema.npz", "cause found", "", nil, 65},
		{"ema.npz", "not compared with the network: --parity off", "not checked: --parity off", []string{"--parity", "off"}, 0},
		{"elsewhere.npz", "parity not checked: the outputs in", "not checked", nil, 0},
		{"", "parity not checked: no reference outputs were found", "not checked", nil, 0},
	} {
		dir, path := t.TempDir(), filepath.Join(t.TempDir(), "posterior")
		for _, name := range []string{"epoch-0.pt", "epoch-1.pt", "epoch-2.pt", tc.file} {
			data, err := os.ReadFile(filepath.Join("testdata", "reference", name))
			if name == "" {
				continue
			}
			if name == tc.file {
				name = "swagwrap-reference.npz"
			}
			if err != nil || os.WriteFile(filepath.Join(dir, name), data, 0o600) != nil {
				t.Fatal(name, err)
			}
		}
		code, out := fitReference(t, path, append(tc.args, dir)...)
		if out = strings.Join(strings.Fields(out), " "); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("%s %v: exit code %d: %s, want %s", tc.file, tc.args, code, out, tc.want)
		}
		if code != 0 {
			continue
		}
		p, err := swag.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if card := p.Card.Parity.String(); !strings.HasPrefix(card, tc.card) {
			t.Errorf("%s: the card says %s, want %s", tc.file, card, tc.card)
		}
		p.Close()
	}
}

// fit --extend holds the further checkpoints against their outputs, and counts those of the posterior that it extends once.
func TestParityExtend(t *testing.T) {
	t.Parallel()
	from := filepath.Join("testdata", "reference")
	checkpoint := func(i int) string { return filepath.Join(from, fmt.Sprintf("epoch-%d.pt", i)) }
	reference := func(name string) []string { return []string{"--reference", filepath.Join(from, name)} }
	off := []string{"--parity", "off"}
	for _, tc := range []struct {
		name          string
		first, second []string
		card          string // "" for an error
	}{
		{"both", reference("right.npz"), reference("right.npz"), "3 of 3 checkpoints"},
		{"read again", append(reference("right.npz"), "--deviations", "final"), reference("right.npz"), "3 of 3 checkpoints"},
		{"read again, the first alone", append(reference("right.npz"), "--deviations", "final"), nil, "2 of 3 checkpoints"},
		{"the first alone", reference("right.npz"), nil, "2 of 3 checkpoints"},
		{"the second alone", nil, reference("right.npz"), "1 of 3 checkpoints"},
		{"off at first", append(reference("ema.npz"), off...), reference("right.npz"), "1 of 3 checkpoints"},
		{"off at last", reference("right.npz"), append(reference("ema.npz"), off...), "not checked: --parity off"},
		{"wrong", reference("right.npz"), reference("ema.npz"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "posterior")
			if code, out := fitReference(t, path, append(tc.first, checkpoint(0), checkpoint(1))...); code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}
			var both bytes.Buffer
			args := append([]string{"swagwrap", "fit", "--extend", path, "-o", path + "2"}, append(tc.second, checkpoint(2))...)
			code := run(t.Context(), args, &both, &both)
			if tc.card == "" {
				if code != 65 || !strings.Contains(strings.Join(strings.Fields(both.String()), " "), "these are the outputs of ema_state_dict") {
					t.Errorf("exit code %d: %s", code, &both)
				}
				return
			}
			p, err := swag.Open(path + "2")
			if err != nil {
				t.Fatal(code, &both, err)
			}
			defer p.Close()
			if card := p.Card.Parity.String(); !strings.HasPrefix(card, tc.card) {
				t.Errorf("the card says %s, want %s: %s", card, tc.card, &both)
			}
		})
	}
}
