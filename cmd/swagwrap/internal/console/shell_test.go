package console

import "testing"

func TestShell(t *testing.T) {
	if got, want := Shell("swagwrap", "compare", "-n", "30", "it's here.npz", "SGLD=a/*.onnx", ""), `swagwrap compare -n 30 'it'\''s here.npz' 'SGLD=a/*.onnx' ''`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
