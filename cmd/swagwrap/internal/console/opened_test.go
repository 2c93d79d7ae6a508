package console

import (
	"errors"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/preprocess"
)

func TestDataHints(t *testing.T) {
	if hints := dataHints(preprocess.ErrNoSize); len(hints) != 1 || !strings.Contains(hints[0], "input-size=") {
		t.Errorf("hints %q", hints)
	}
	if dataHints(errors.New("other")) != nil {
		t.Error("another error has the hint of sizes")
	}
}
