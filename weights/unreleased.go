package weights

import "sync/atomic"

// releaseBytes is how many bytes of mapped files are read before their memory is given back.
const releaseBytes = 64 << 20

// Unreleased counts the bytes of mapped files that were read since their memory was given back. A pass over large files
// needs one, because otherwise all pages that it has read count as its memory. Several goroutines may use it.
type Unreleased struct{ bytes atomic.Int64 }

// Read notes that n bytes were read. It calls release, if not nil, once there are many.
func (u *Unreleased) Read(n int64, release func()) {
	if u.bytes.Add(n) < releaseBytes {
		return
	}
	u.bytes.Store(0)
	if release != nil {
		release()
	}
}
