package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/weights"
)

// labelledSection has a row for each labelled example: its class, and its calibrated probabilities.
const labelledSection = "labelled"

func labelledRows(l *shares.Labelled) (rows [][]float32) {
	for i, label := range l.Labels {
		rows = append(rows, append([]float32{float32(label)}, l.Probs[i*l.Classes:][:l.Classes]...))
	}
	return rows
}

// readLabelled is the inverse of labelledRows. It returns nil for a file without them.
func readLabelled(st *weights.Safetensors) (*shares.Labelled, error) {
	v, ok := st.View(labelledSection)
	if !ok {
		return nil, nil
	}
	if v.DType != weights.F32 || len(v.Shape) != 2 || v.Shape[1] < 3 {
		return nil, fmt.Errorf("section %q: want F32 with a class and probabilities in each row", labelledSection)
	}
	l, row := &shares.Labelled{Classes: int(v.Shape[1] - 1)}, make([]float32, v.Shape[1])
	for i := range v.Shape[0] {
		v.Float32s(row, i*v.Shape[1])
		if row[0] < 0 || row[0] != float32(int(row[0])) {
			return nil, fmt.Errorf("section %q: row %d has the class %v", labelledSection, i, row[0])
		}
		l.Labels, l.Probs = append(l.Labels, int(row[0])), append(l.Probs, row[1:]...)
	}
	if err := l.Sound(); err != nil {
		return nil, fmt.Errorf("section %q: %w", labelledSection, err)
	}
	return l, nil
}
