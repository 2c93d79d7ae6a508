package batchnorm

import (
	"sync"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/swag"
)

// A knownPass is a pass that the choice of the number of images made, over the first images. It is of the first network
// that is drawn so.
type knownPass struct {
	n    *infer.Network
	how  swag.SampleOptions
	some bnupdate.Result
}

// ForMember returns the data for member k of n, drawn as how says. What the choice of the number of images computed for the same
// weights is not computed again. The zero how is SWA.
func (b Training) ForMember(n *infer.Network, how swag.SampleOptions, k int) Training {
	b.some, how = bnupdate.Result{}, undivided(how)
	if how.Scale == 0 { // other options draw the same weights
		how, k = swag.SampleOptions{}, 0
	}
	for _, known := range b.known {
		if known.n == n && k == 0 && known.how == how {
			b.some = known.some
		}
	}
	return b
}

// undivided leaves out what never changes the first member.
func undivided(how swag.SampleOptions) swag.SampleOptions {
	how.Workers, how.Antithetic, how.Orthogonal = 0, false, false
	return how
}

// firstPasses looks at the first pass of each network.
type firstPasses struct {
	mu      sync.Mutex
	seen    func(r *Record, warnings []string)
	records map[*infer.Network]*Record // of networks without a pass so far
}

// look completes the record of a network by its first pass.
func (f *firstPasses) look(n *infer.Network, r bnupdate.Result) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	record, ok := f.records[n]
	if !ok {
		return
	}
	delete(f.records, n)
	before := len(record.Warnings)
	record.warn(r)
	if f.seen != nil {
		f.seen(record, record.Warnings[before:])
	}
}
