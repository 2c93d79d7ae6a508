package statefile

import (
	"encoding/binary"
	"fmt"
)

// legacyMagic is the number at the start of files of PyTorch 0.4 to 1.5, as a separate pickle.
var legacyMagic = long{0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19}

const legacyVersion = 1001

// openLegacy reads the format of PyTorch before 1.6, which later versions write on request. It consists of five
// pickles (the magic number, a version, facts about the machine, the object, the keys of its storages). Each storage
// follows, as a count and its elements. All numbers are little-endian, on big-endian machines too.
func openLegacy(data []byte, b *budget) (*container, error) {
	m := &machine{data: data, budget: b}
	magic, err := m.load()
	if err != nil || !is(magic, legacyMagic) {
		return nil, &Error{
			What: "a Python pickle, want a checkpoint that torch.save wrote",
			Err:  err,
			Hint: "in Python: torch.save(model.state_dict(), NEW)",
		}
	}
	load := func(what string) (v any) {
		if err == nil {
			if v, err = m.load(); err != nil {
				err = &Error{What: what, Err: err}
			}
		}
		return v
	}
	if version := load("version"); err == nil && version != any(int64(legacyVersion)) {
		return nil, &Error{What: fmt.Sprintf("version %s, want %d", describe(version), legacyVersion)}
	}
	load("facts about the machine")
	c := &container{root: load("object")}
	stored := m.persistent
	keys := load("keys of the storages")
	if err != nil {
		return nil, err
	}
	if c.records, err = legacyRecords(data[m.pos:], elements(keys), stored, b); err != nil {
		return nil, &Error{What: "not a readable checkpoint", Err: err}
	}
	return c, nil
}

// legacyRecords cuts the bytes after the pickles into storages. The object gives the size of an element.
func legacyRecords(data []byte, keys []any, stored []*persistent, b *budget) (map[string]record, error) {
	sizes := map[string]uint64{}
	for _, p := range stored {
		ref, ok := newReference(p)
		if !ok {
			continue
		}
		if _, seen := sizes[ref.key]; !seen { // the first counts, as in PyTorch
			if err := b.spend(2 * costName); err != nil { // the name stands in sizes and in records
				return nil, err
			}
			sizes[ref.key] = uint64(ref.kind.size)
		}
	}
	records := make(map[string]record, len(sizes))
	for _, k := range keys {
		key, ok := k.(text)
		size, known := sizes[string(key)]
		if !ok || !known {
			return nil, fmt.Errorf("storage %q: no tensor has it", shorten(string(key)))
		}
		if _, twice := records[string(key)]; twice {
			return nil, fmt.Errorf("storage %q: listed twice", shorten(string(key)))
		}
		if len(data) < 8 {
			return nil, fmt.Errorf("storage %q: %d bytes left: truncated", shorten(string(key)), len(data))
		}
		n := binary.LittleEndian.Uint64(data)
		data = data[8:]
		if n > uint64(len(data))/size {
			return nil, fmt.Errorf("storage %q: %d elements of %d bytes, %d bytes left: truncated", shorten(string(key)), n,
				size, len(data))
		}
		records[string(key)] = record{data: data[: n*size : n*size]}
		data = data[n*size:]
	}
	return records, nil
}
