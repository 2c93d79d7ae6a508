package ort

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// NVIDIA's libraries are sought in PyTorch's folders before others. Each that is missing or damaged is named, with what to
// install. No GPU is needed.
func TestCUDALibraries(t *testing.T) {
	env := t.TempDir()
	site := filepath.Join(env, "lib", "python3.12", "site-packages")
	wheel, torch := filepath.Join(site, "nvidia", "cu13", "lib"), filepath.Join(site, "torch", "lib")
	for _, dir := range []string{wheel, torch} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("VIRTUAL_ENV", env)
	t.Setenv("LD_LIBRARY_PATH", "/first:/second")
	dirs := nvidiaFolders()
	if i, j := slices.Index(dirs, wheel), slices.Index(dirs, "/first"); i < 0 || !slices.Contains(dirs, torch) || j < i || !slices.Contains(dirs, "/second") {
		t.Errorf("folders %q", dirs)
	}
	const damaged = "libdamaged.so.10" // no machine has it elsewhere
	known := nvidia
	defer func() { nvidia = known }()
	nvidia = append(slices.Clone(known), nvidiaLibrary{damaged, "nvidia-damaged"})
	if err := os.WriteFile(filepath.Join(wheel, damaged), []byte("no library"), 0o666); err != nil {
		t.Fatal(err)
	}
	missing := openNVIDIA([]string{wheel})
	at := slices.IndexFunc(missing, func(m missingLibrary) bool { return m.name == damaged })
	if at < 0 || !strings.Contains(missing[at].why, filepath.Join(wheel, damaged)) {
		t.Errorf("missing %+v, want the reason for a damaged library", missing)
	}
	e := &LibraryError{Provider: CUDA, Err: lacking{{"libcuda.so.1", "", ""}, {"libcublas.so.13", "nvidia-cublas", ""}, {"libcublasLt.so.13", "nvidia-cublas", ""}, {"libcurand.so.10", "nvidia-curand", ""}}}
	if hint := e.Hint(); !strings.HasPrefix(hint, "install NVIDIA's driver for CUDA 13, which has libcuda.so.1; ") || !strings.Contains(hint, "pip install nvidia-cublas nvidia-curand. ") {
		t.Errorf("hint %q", hint)
	}
	if hint := (&LibraryError{Provider: CUDA}).Hint(); platform() == "linux/amd64" && !strings.HasPrefix(hint, "the set-up with Provider cuda fetches") {
		t.Errorf("hint %q", hint)
	}
}

// doctor names each GPU as nvidia-smi does, and says nothing without that program.
func TestNVIDIAGPUs(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if printed := nvidiaGPUs(); printed != "" {
		t.Errorf("without nvidia-smi: %q", printed)
	}
	script := "#!/bin/sh\ntest \"$2\" = --format=csv,noheader && echo 'NVIDIA H200, 580.159.04, 143771 MiB' && echo 'NVIDIA L4, 580.159.04, 23034 MiB'\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	if printed, want := nvidiaGPUs(), "NVIDIA H200, 580.159.04, 143771 MiB; NVIDIA L4, 580.159.04, 23034 MiB"; printed != want {
		t.Errorf("%q, want %q", printed, want)
	}
}
