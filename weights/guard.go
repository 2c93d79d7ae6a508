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

// Guarded returns f as a function that fails if f reads a mapped file that was cut short, or whose disk fails. The
// error is a [*ChangedError], or wraps [syscall.EIO] and names the file. Unguarded, such a read is a signal that ends
// the process.
//
// The guard holds only for the goroutine that calls the function. Every goroutine that reads [Mapping] data needs its
// own, and so does every goroutine that reads a posterior or a model. Other panics pass.
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
		if err = f(); errors.Is(err, syscall.EFAULT) { // write(2) of mapped bytes fails instead of faulting
			err = cmp.Or(Changed(), err)
		}
		return err
	}
}

// faulted returns the error for a panic that is a fault in a mapped file, or nil for other panics. Deferred functions
// may have closed the file already.
func (r *registry) faulted(panicked any) error {
	fault, ok := panicked.(interface {
		runtime.Error
		Addr() uintptr
	})
	if !ok {
		return nil
	}
	// in returns the position of the fault in data, and whether it is in data.
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
