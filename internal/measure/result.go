package measure

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/swagwrap/swagwrap/internal/report"
)

// A Result is everything that a benchmark found; L is a line of its table.
type Result[L any] struct {
	Machine Machine  `json:"machine"`
	Job     string   `json:"job"` // what was measured, above the table
	Lines   []L      `json:"lines"`
	Notes   []string `json:"notes"`
}

// WriteText writes a table that has the rows of r.Lines already, between the job
// and the notes.
func (r *Result[L]) WriteText(w io.Writer, t *report.Table) error {
	for _, n := range r.Notes {
		t.Note(n)
	}
	t.Note(r.Machine.String())
	if _, err := fmt.Fprintf(w, "%s\n\n", r.Job); err != nil {
		return err
	}
	return t.WriteText(w)
}

// WriteJSON writes all figures to a file.
func (r *Result[L]) WriteJSON(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o666)
}
