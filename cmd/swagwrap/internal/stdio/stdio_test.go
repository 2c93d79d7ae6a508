package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain says on standard error what Closed says, if a test asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("STDIO_TEST") != "" {
		fmt.Fprint(os.Stderr, Closed())
		return
	}
	os.Exit(m.Run())
}

func TestClosed(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for redirect, want := range map[string]string{">&-": "true", ">/dev/null": "false", "1<>/dev/null": "false", "| cat": "false", "<&- >/dev/null": "false", "<&- >&-": "true"} {
		cmd := exec.Command("sh", "-c", `"$0" `+redirect, self)
		cmd.Env = append(os.Environ(), "STDIO_TEST=1")
		var printed strings.Builder
		cmd.Stderr = &printed
		if err := cmd.Run(); err != nil || printed.String() != want {
			t.Errorf("%s: %s, %v, want %s", redirect, printed.String(), err, want)
		}
	}
}

func ExampleClosed() {
	fmt.Println(Closed())
	// Output: false
}
