package tokenizer

import "fmt"

// maxEntries bounds the bytes of all entries that are looked for. They take 20 times as much memory.
const maxEntries = 8 << 20

// entries are texts that are looked for in another text: at each place the longest one that begins there. The time grows
// with the text alone, however many they are (Aho and Corasick 1975). The tree has the entries backwards, and the text is
// read backwards, so that each place knows its longest entry at once.
type entries struct {
	list  []string
	root  [256]int32 // the children of node 0
	nodes []entryNode
}

// entryNode is the end of some entries. 0 stands for no node.
type entryNode struct {
	child, sibling int32
	shorter        int32 // the node of the longest other entry that is a beginning of this entry
	entry          int32 // the longest entry that is read here, or −1
	letter         byte
}

// newEntries makes the tree. An empty entry is never found.
func newEntries(list []string) (*entries, error) {
	total := 0
	for _, s := range list {
		if total += len(s); total > maxEntries {
			return nil, fmt.Errorf("%d tokens and more take %d bytes, want at most %d", len(list), total, maxEntries)
		}
	}
	e := &entries{list: list, nodes: []entryNode{{entry: -1}}}
	for k, s := range list {
		at := int32(0)
		for i := len(s) - 1; i >= 0; i-- {
			next := e.below(at, s[i])
			if next == 0 {
				next = e.grow(at, s[i])
			}
			at = next
		}
		if at > 0 {
			e.nodes[at].entry = int32(k)
		}
	}
	e.link()
	return e, nil
}

func (e *entries) below(at int32, letter byte) int32 {
	if at == 0 {
		return e.root[letter]
	}
	for c := e.nodes[at].child; c > 0; c = e.nodes[c].sibling {
		if e.nodes[c].letter == letter {
			return c
		}
	}
	return 0
}

func (e *entries) grow(at int32, letter byte) int32 {
	next := int32(len(e.nodes))
	e.nodes = append(e.nodes, entryNode{sibling: e.nodes[at].child, entry: -1, letter: letter})
	e.nodes[at].child = next
	if at == 0 {
		e.root[letter] = next
	}
	return next
}

// link finds the shorter end of each node, level by level.
func (e *entries) link() {
	level := []int32{0}
	for len(level) > 0 {
		var next []int32
		for _, at := range level {
			for c := e.nodes[at].child; c > 0; c = e.nodes[c].sibling {
				n := &e.nodes[c]
				if at > 0 {
					n.shorter = e.step(e.nodes[at].shorter, n.letter)
				}
				if n.entry < 0 {
					n.entry = e.nodes[n.shorter].entry
				}
				next = append(next, c)
			}
		}
		level = next
	}
}

// step returns the node for what was read at a node and one more letter.
func (e *entries) step(at int32, letter byte) int32 {
	for {
		if next := e.below(at, letter); next > 0 || at == 0 {
			return next
		}
		at = e.nodes[at].shorter
	}
}

// find calls found with each place of a text where an entry begins, from its end to its beginning.
func (e *entries) find(text string, found func(at int, entry int32)) {
	at := int32(0)
	for i := len(text) - 1; i >= 0; i-- {
		if at = e.step(at, text[i]); e.nodes[at].entry >= 0 {
			found(i, e.nodes[at].entry)
		}
	}
}
