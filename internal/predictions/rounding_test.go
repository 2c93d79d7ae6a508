package predictions

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// half rounds to float16, for numbers from 2⁻¹⁴ to 1.
func half(v float64) uint16 {
	digits, exponent := math.Frexp(v)
	if v < 1.0/(1<<14) {
		return uint16(math.Round(v * (1 << 24)))
	}
	m := math.Round(math.Ldexp(digits, 11))
	return uint16((exponent+14-1)<<10) + uint16(m)
}

// Probabilities that were saved in 16 bits, or with few decimals, are probabilities in every format and under every name.
func TestRoundedProbabilities(t *testing.T) {
	const rows = 40
	for _, classes := range []int{2, 3, 10, 100} {
		r := rand.New(rand.NewPCG(1, uint64(classes)))
		exact := make([][]float64, rows)
		for i := range exact {
			exact[i] = make([]float64, classes)
			total := 0.0
			for c := range exact[i] {
				exact[i][c] = math.Exp(2 * r.NormFloat64())
				total += exact[i][c]
			}
			for c := range exact[i] {
				exact[i][c] /= total
			}
		}
		for _, how := range []string{"2 decimals", "3 decimals", "4 decimals", "bfloat16", "clipped"} {
			text := func(v float64) string {
				switch d := how[0]; {
				case how == "bfloat16":
					v = float64(math.Float32frombits((math.Float32bits(float32(v)) + 0x8000) &^ 0xffff))
				case how == "clipped":
					v = max(v, 1e-4)
				default:
					return strconv.FormatFloat(v, 'f', int(d-'0'), 64)
				}
				return strconv.FormatFloat(v, 'g', -1, 64)
			}
			for _, name := range []string{"p", "probs", "logits"} {
				var csv, jsonl strings.Builder
				for c := range classes {
					fmt.Fprintf(&csv, "%s_%d,", name, c)
				}
				csv.WriteString("label\n")
				for _, row := range exact {
					var cells []string
					for _, v := range row {
						cells = append(cells, text(v))
					}
					fmt.Fprintf(&csv, "%s,0\n", strings.Join(cells, ","))
					fmt.Fprintf(&jsonl, "{%q: [%s], \"label\": 0}\n", name, strings.Join(cells, ","))
				}
				for file, content := range map[string]string{"x.csv": csv.String(), "x.jsonl": jsonl.String()} {
					wantRounded(t, saved(t, file, []byte(content)), exact, fmt.Sprintf("%s, %s of %d classes, %s", file, name, classes, how))
				}
			}
		}
		var halves []byte
		for _, row := range exact {
			for _, v := range row {
				halves = binary.LittleEndian.AppendUint16(halves, half(v))
			}
		}
		array := npyFile("<f2", halves, rows, classes)
		wantRounded(t, saved(t, "x.npy", array), exact, "float16, .npy")
		for _, name := range []string{"probs", "preds", "y_prob", "logits"} {
			wantRounded(t, saved(t, "x.npz", npz(t, name, array)), exact, "float16, .npz, "+name)
		}
		halves = nil
		for _, row := range exact {
			for _, v := range row {
				halves = binary.LittleEndian.AppendUint16(halves, half(math.Round(v*100)/100))
			}
		}
		array = npyFile("<f2", halves, rows, classes)
		for _, name := range []string{"probs", "scores", "logits"} {
			wantRounded(t, saved(t, "x.npz", npz(t, name, array)), exact, "2 decimals in float16, .npz, "+name)
		}
	}
}

func wantRounded(t *testing.T, path string, exact [][]float64, what string) {
	t.Helper()
	p, err := Read(path, ReadOptions{})
	if err != nil || !p.Probabilities || p.Len() != len(exact) {
		t.Errorf("%s: %+v, %v", what, p, err)
		return
	}
	for i, row := range exact {
		sum := 0.0
		for c, v := range row {
			got := p.Values[i*p.Classes+c]
			sum += got
			if math.Abs(got-v) > 0.05 {
				t.Fatalf("%s: row %d, class %d: %v, want about %v", what, i, c, got, v)
			}
		}
		if math.Abs(sum-1) > sumTolerance {
			t.Fatalf("%s: row %d adds up to %v", what, i, sum)
		}
	}
}

// Logits are none, and neither are the scores of independent labels.
func TestNotRounded(t *testing.T) {
	for name, text := range map[string]string{
		"logits in [0, 1]":   "logit_0,logit_1\n" + strings.Repeat("0.3,0.9\n0.1,0.2\n", 10),
		"independent labels": "logit_0,logit_1\n" + strings.Repeat("0.9,0.9\n0.5,0.5\n", 10),
		"one digit":          "logit_0,logit_1\n0.4,0.5\n",
	} {
		if p, err := Read(saved(t, "x.csv", []byte(text)), ReadOptions{}); err != nil || p.Probabilities {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// Percentages are neither probabilities nor logits: a temperature would hide what they are.
func TestPercentages(t *testing.T) {
	for name, text := range map[string]string{
		"percentages": "logit_0,logit_1\n" + strings.Repeat("30,70\n99.5,0.5\n", 10),
		"rounded":     "logit_0,logit_1,logit_2\n" + strings.Repeat("33,33,33\n98,1,1\n", 10),
	} {
		if _, err := Read(saved(t, "x.csv", []byte(text)), ReadOptions{}); err == nil || !strings.Contains(err.Error(), "percentages") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := Read(saved(t, "x.csv", []byte("logit_0,logit_1\n"+strings.Repeat("30,70\n20,90\n", 10))), ReadOptions{}); err != nil || p.Probabilities {
		t.Errorf("large logits: %+v, %v", p, err)
	}
}
