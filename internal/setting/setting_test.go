package setting

import (
	"fmt"
	"reflect"
	"testing"
)

// Every setting and every command has a name of its own.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	check := func(what, name string) {
		if name == "" || seen[name] {
			t.Errorf("%s: no name of its own: %q", what, name)
		}
		seen[name] = true
	}
	for _, s := range All() {
		check(fmt.Sprintf("setting %d", s), s.GoName())
	}
	clear(seen)
	for _, c := range AllCommands() {
		check(fmt.Sprintf("command %d", c), c.GoName())
		check(c.GoName(), c.String())
	}
}

// A message is in the words of a library until a program speaks.
func TestSpeak(t *testing.T) {
	speak := func(v Vocabulary) {
		said.Store(false)
		Speak(v)
	}
	defer speak(Vocabulary{})
	says := func() []string {
		return []string{
			Memory.String(), Memory.With("SIZE"), fmt.Sprint(Memory), Both(Task.With("labels"), Pad.With("0")),
			Fit.String(), fmt.Sprint(Fit), Fit.With(State.With("IN=OUT")), Inspect.Of("a.onnx", "b.onnx"),
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
	speak(Vocabulary{
		Program:  "program",
		Settings: map[Setting]string{Memory: "--memory", State: "--state", Provider: "--provider", Verbose: "-v", Task: "--task", Pad: "--pad"},
		Commands: map[Command]string{Fit: "fit", Inspect: "inspect", Setup: "setup"},
	})
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
	Speak(Vocabulary{})
}

func ExampleSetting_With() {
	fmt.Println(Memory.With("SIZE") + " allows more")
	// Output: Memory SIZE allows more
}
