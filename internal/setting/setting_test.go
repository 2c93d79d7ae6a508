package setting

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Every setting and every command has a name of its own, and the name of a setting in Go is that of its constant.
func TestNames(t *testing.T) {
	for file, least := range map[string]int{"setting.go": 60, "command.go": 10} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +(?:Setting|Command) += "(.+)"$`).FindAllStringSubmatch(string(source), -1) {
			if seen[m[2]] {
				t.Errorf("%s: another is %q, too", m[1], m[2])
			}
			seen[m[2]] = true
			if s := Setting(m[2]); file == "setting.go" && s.GoName() != m[1] {
				t.Errorf("%s: is %s in Go", m[1], s.GoName())
			}
			if c := Command(m[2]); file == "command.go" && nouns[c] == "" {
				t.Errorf("%s: has no words in a library", m[1])
			}
		}
		if len(seen) < least {
			t.Errorf("%s: %d names", file, len(seen))
		}
	}
}

// A message is in the words of a library until a program speaks.
func TestSpeak(t *testing.T) {
	speak := func(name string) {
		used.Store(false)
		Speak(name, func(flag string) string { return strings.Repeat("-", min(len(flag), 2)) + flag })
	}
	defer speak("")
	says := func() []string {
		return []string{
			Memory.String(), Memory.With("SIZE"), fmt.Sprint(Memory), Both(Task.With("labels"), Pad.With("0")),
			Fit.String(), fmt.Sprint(Fit), Fit.With(State.With("IN=OUT")), Inspect.WithFiles("a.onnx", "b.onnx"),
			Line(Setup.String()), Line(Setup.With(Provider.With("cuda"), Verbose.String())), Quoted(Setup.String()),
		}
	}
	library := []string{
		"Memory", "Memory SIZE", "Memory", "Task labels and Pad 0",
		"the fit", "the fit", "the fit with State IN=OUT", "the inspection of a.onnx and b.onnx",
		"the set-up", "the set-up with Provider cuda and Verbose", "the set-up",
	}
	if got := says(); !reflect.DeepEqual(got, library) {
		t.Errorf("a library says\n%q, want\n%q", got, library)
	}
	speak("program")
	program := []string{
		"--memory", "--memory SIZE", "--memory", "--task labels --pad 0",
		"fit", "fit", "fit --state IN=OUT", "inspect a.onnx b.onnx",
		"program setup", "program setup --provider cuda -v", "`program setup`",
	}
	if got := says(); !reflect.DeepEqual(got, program) {
		t.Errorf("a program says\n%q, want\n%q", got, program)
	}
}

// A program that speaks too late does not start.
func TestSpeakLate(t *testing.T) {
	_ = Memory.String()
	defer func() {
		if recover() == nil {
			t.Error("Speak does not mind that a word was made before")
		}
	}()
	Speak("", nil)
}

func ExampleSetting_With() {
	fmt.Println(Memory.With("SIZE") + " allows more")
	// Output: Memory SIZE allows more
}
