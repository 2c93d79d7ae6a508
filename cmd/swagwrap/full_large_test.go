//go:build large && linux

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
)

// TestDiskFull scores onto disks of 1 to 8 MB, in memory: the exit code is 75 as long as there is no room, and when there
// is, the run goes on to the bytes that it would have written. It needs leave to mount: as root, or in a namespace of its own.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	mnist := func(name string) string { return infertest.Path(infertest.MNIST, name) }
	score := func(out string) []string {
		return []string{"score", "-q", "--resume", "-b", "32", "--probs", "--keep-members", "-o", out, at("e.safetensors"), mnist("val.npz")}
	}
	for _, args := range [][]string{
		{"fit", "-q", "--task", "classes", "-o", at("p.safetensors"), mnist("checkpoints/epoch-29.onnx"), mnist("checkpoints/epoch-30.onnx")},
		{"sample", "-q", "-n", "30", "--bn-data", mnist("train.npz"), "--bn-samples", "128", "-o", at("e.safetensors"), at("p.safetensors")},
		score(at("clean.csv")),
	} {
		if code, printed := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
	}
	exe := executable(t, dir)
	full := 0
	for megabytes := 1; megabytes <= 8; megabytes++ {
		const script = `dir=$1 clean=$2 size=$3; shift 3
			mkdir "$dir" && mount -t tmpfs -o size="$size"m swagwrap "$dir" || exit 1
			"$@"; echo "code $?"; ls -A "$dir"
			mount -o remount,size=64m "$dir" || exit 1
			"$@"; echo "then $?"; cmp "$dir/out.csv" "$clean" && echo same; ls -A "$dir"`
		disk := at(fmt.Sprint("disk", megabytes))
		args := append([]string{"-rm", "sh", "-c", script, "sh", disk, at("clean.csv"), strconv.Itoa(megabytes), exe}, score(filepath.Join(disk, "out.csv"))...)
		b, err := exec.Command("unshare", args...).CombinedOutput()
		printed := string(b)
		if err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
		first, then, _ := strings.Cut(printed, "then ")
		switch {
		case strings.Contains(first, "code 75\n"):
			full++
			if !strings.Contains(first, "no space left on device") || strings.Contains(first, "\nout.csv\n") {
				t.Errorf("%d MB: %s", megabytes, printed)
			}
		case !strings.Contains(first, "code 0\n"):
			t.Errorf("%d MB: %s", megabytes, printed)
		}
		if then != "0\nsame\nout.csv\nout.csv.meta.json\n" {
			t.Errorf("%d MB, with room again: %s", megabytes, printed)
		}
	}
	t.Logf("%d of 8 disks were full", full)
	if full < 4 {
		t.Errorf("%d of 8 disks were full: the test shows little", full)
	}
}
