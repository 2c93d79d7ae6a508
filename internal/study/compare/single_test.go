package compare_test

import (
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/study/compare/show"
)

// One checkpoint is compared with its own scalings, and with the Laplace approximation around it.
func TestSingle(t *testing.T) {
	t.Parallel()
	c := small(t)
	c.External = nil
	c.Runs = []baseline.Run{{Network: infertest.Network(t, infertest.Fit(t, c.Runs[0].Checkpoints[1]))}}
	r, err := c.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	if base := r.Verdict().Base; base.Key != baseline.SGD { // five images do not determine a temperature
		t.Errorf("differences are to %s", base.Name)
	}
	for _, m := range r.Methods {
		if !strings.HasPrefix(m.Name, "your network") {
			t.Errorf("row %q", m.Name)
		}
	}
	const collected = "One checkpoint gives no SWA and no SWAG."
	if v := show.Verdict(r); !strings.HasPrefix(v[len(v)-1], collected) {
		t.Errorf("verdict %q", v)
	}
	if text := printed(t, r); !strings.Contains(text, "torch.save(") || !strings.Contains(text, ", one checkpoint, ") {
		t.Error(text)
	}
	r.Comparison = small(t)
	if text := printed(t, r); strings.Contains(text, "torch.save(") || strings.Contains(text, collected) {
		t.Error("several checkpoints count as one")
	}
}
