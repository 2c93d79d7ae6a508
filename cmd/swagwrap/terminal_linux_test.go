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

	"golang.org/x/sys/unix"
)

// onTerminal runs the program with a terminal as its standard output and returns what comes to the screen.
func onTerminal(t *testing.T, args ...string) string {
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
	return strings.ReplaceAll(<-shown, "\r\n", "\n")
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
		shown := onTerminal(t, args...)
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
