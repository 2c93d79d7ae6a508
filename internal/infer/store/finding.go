package store

import (
	"encoding/json"

	"github.com/swagwrap/swagwrap/internal/records"
)

// mostFindings is the number of entries that a store of findings keeps, of some kilobytes each.
const mostFindings = 1000

// Recall reads a finding, and reports whether there is one. What cannot be read is found again.
func (s *Store) Recall(k Key, finding any) bool {
	found, err := s.Get(k, func(h *records.Head) (func(*records.Row) error, error) {
		return func(*records.Row) error { return nil }, json.Unmarshal(h.About, finding)
	})
	return found && err == nil
}

// Remember keeps a finding for later commands, and removes the oldest of many. A folder that cannot be written, such as a full
// one, costs later commands their time only.
func (s *Store) Remember(k Key, finding any) {
	if s.Put(k, finding, 1, func(_ int, r *records.Row) { r.Values = r.Values[:0] }) == nil {
		s.Trim(mostFindings)
	}
}
