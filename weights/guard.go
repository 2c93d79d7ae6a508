package weights

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// Guarded returns f as a function that fails where f reads a mapped file that was
// cut short, or whose disk fails: with a [*ChangedError], or with an error that
// wraps [syscall.EIO] and names the file. Unguarded, such a read is a signal that
// ends the process. It holds for the goroutine that calls the function only: every
// goroutine that reads [Mapping] data, and so all that read a posterior or a
// model, needs one of its own. Other panics pass.
func Guarded(f func() error) func() error {
	return func() (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if r := recover(); r != nil {
				if err = live.faulted(r); err == nil {
					panic(r)
				}
			}
		}()
		if err = f(); errors.Is(err, syscall.EFAULT) { // write(2) of mapped bytes fails instead
			err = cmp.Or(Changed(), err)
		}
		return err
	}
}

// faulted returns the error that a panic stands for which is a fault in a mapped
// file, or nil. What is deferred on the way here may have closed the file.
func (r *registry) faulted(panicked any) error {
	fault, ok := panicked.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		return nil
	}
	// in returns where the fault is in data, and whether it is.
	in := func(data []byte) (at uintptr, ok bool) {
		at = fault.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(data)))
		return at, at < uintptr(len(data))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for m := range r.files {
		if at, ok := in(m.Data); ok {
			return cmp.Or(m.watch.Changed(), fmt.Errorf("%s: byte %d: %w", m.Path, at, syscall.EIO))
		}
	}
	for _, g := range r.closed {
		if _, ok := in(g.data); ok {
			return g.err
		}
	}
	return nil
}
