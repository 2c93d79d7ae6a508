package infer_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/infertest"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// swaOf calls f with the weights of SWA.
func swaOf(t *testing.T, p *swag.Posterior, f func(parameters weights.Vector) error) {
	t.Helper()
	err := infer.EachMember(t.Context(), p, swag.SampleOptions{}, 0, 1, func(_ int, parameters weights.Vector) error { return f(parameters) })
	if err != nil {
		t.Fatal(err)
	}
}

// engine is one of ordinary settings.
func engine(t *testing.T) *infer.Engine {
	t.Helper()
	return &infer.Engine{Runtime: infertest.Runtime(t)}
}
