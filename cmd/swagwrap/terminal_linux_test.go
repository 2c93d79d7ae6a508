package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// onTerminal runs the program with a terminal of 80 columns as its standard output. It returns what comes to the screen, and what comes
// to standard error.
func onTerminal(t *testing.T, args ...string) (screen80, messages string) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(executable(t, t.TempDir()), args...)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = terminal, &printed
	shown := make(chan string)
	go func() {
		var all bytes.Buffer
		all.ReadFrom(screen) // ends with EIO when nobody has the terminal open
		shown <- all.String()
	}()
	err = cmd.Run()
	terminal.Close()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, &printed)
	}
	return strings.ReplaceAll(<-shown, "\r\n", "\n"), printed.String()
}

const columns = 80

// The first screen of try fits a terminal of 40 lines. The accuracy and the advised row are on it.
func TestFirstScreen(t *testing.T) {
	t.Parallel()
	out, few := filepath.Join(t.TempDir(), "out"), fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 1000)
	stdout, messages := onTerminal(t, "try", "-o", out, "-n", "4", "--methods", "sgd,sgd-temp,sgd-vector,swa,swa-temp,swa-vector,swag,swag-temp",
		"--augment", "none", "--preprocess", "mean=0.1307 std=0.3081", "--template", filepath.Join(few, "model.onnx"), "--bn-data",
		filepath.Join(few, "train.npz"), "--val", filepath.Join(few, "val.npz"), filepath.Join(few, "states"), filepath.Join(few, "test.npz"))
	shown := func(s string) string { return strings.ReplaceAll(s, filepath.Dir(out)+"/", "") }
	lines := 0
	for line := range strings.Lines(shown(messages)) {
		lines += 1 + utf8.RuneCountInString(line)/(columns+2) // with its line feed
	}
	for line := range strings.Lines(stdout) {
		if lines++; utf8.RuneCountInString(shown(line)) > columns+1 {
			t.Errorf("%q is wider than the screen", line)
		}
	}
	for _, want := range []string{"Deploy ", "Your network is ", " clear gain ", "\nmethod ", " accuracy ", "minus SWA-Temp", "← deploy", "\nT is the temperature",
		out + "/table.txt"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the screen lacks %q:\n%s", want, stdout)
		}
	}
	if lines > 40 || strings.Contains(stdout, "with other seeds") {
		t.Errorf("%d lines:\n%s%s", lines, messages, stdout)
	}
}

// Names of files, classes and tensors may hold escape characters. No terminal gets one, though
// files and pipes get every byte.
func TestTerminal(t *testing.T) {
	t.Parallel()
	const bad = "\x1b[2Jé"
	c := small(t)
	if err := os.WriteFile(c.at("names"), []byte("a\nb"+bad+"\nc\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	c.ok("fit", "-q", "--task", "classes", "--class-names", c.at("names"), "-o", c.at("p"), c.paths[0], c.paths[1])
	c.ok("sample", "-q", "-n", "2", "--bn-data", filepath.Join("testdata", "images.npz"), "-o", c.at("e"), c.at("p"))
	images := c.at("images" + bad + ".npz")
	b, err := os.ReadFile(filepath.Join("testdata", "images.npz"))
	if err == nil {
		err = os.WriteFile(images, b, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"score", "-q", "-o", "-", c.at("e"), images}, {"inspect", c.at("p")}, {"inspect", "--json", c.at("p")},
		{"compare", "-q", "--methods", "swag", "-n", "2", "--bn-data", images, c.at("p"), images},
	} {
		shown, _ := onTerminal(t, args...)
		plain, err := exec.Command(executable(t, t.TempDir()), args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(shown, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0 }); i >= 0 || len(shown) == 0 {
			t.Errorf("%q shows %q", args, shown[max(0, i):])
		}
		if args[0] == "score" {
			if !strings.Contains(string(plain), bad) {
				t.Errorf("%q: a pipe gets %q", args, plain)
			}
			if want := strings.ReplaceAll(string(plain), "\x1b", "�"); shown != want {
				t.Errorf("%q shows %q, want %q", args, shown, want)
			}
		}
	}
}
