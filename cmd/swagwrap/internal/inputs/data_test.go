package inputs

import (
	"errors"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/preprocess"
)

func TestDataHints(t *testing.T) {
	if hints := DataHints(preprocess.ErrNoSize); len(hints) != 1 || !strings.Contains(hints[0], "input-size=") {
		t.Errorf("hints %q", hints)
	}
	if DataHints(errors.New("other")) != nil {
		t.Error("another error has the hint of sizes")
	}
}
