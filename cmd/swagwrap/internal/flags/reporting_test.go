package flags

import (
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	got := commandLine([]string{"/usr/bin/swagwrap", "compare", "-n", "30", "it's here.npz", "SGLD=a/*.onnx", ""})
	if want := `swagwrap compare -n 30 'it'\''s here.npz' 'SGLD=a/*.onnx' ''`; got != want || strings.Contains(got, "/usr/bin") {
		t.Errorf("%s, want %s", got, want)
	}
}
