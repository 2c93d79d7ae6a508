package tokenizer

import (
	"container/heap"
	"fmt"
)

// bpe merges pairs of symbols in the order of training (Sennrich et al. 2016).
type bpe struct {
	modelFile
	merges map[[2]int32]merge
	unk    int32 // −1 for none
}

type merge struct{ rank, id int32 }

func newBPE(f modelFile) (model, error) {
	if f.ByteFallback || f.Dropout != nil && *f.Dropout > 0 || f.Prefix != nil && *f.Prefix != "" || f.Suffix != nil && *f.Suffix != "" {
		return nil, unsupported("model", "BPE with byte_fallback, dropout, a prefix or a suffix")
	}
	b := &bpe{modelFile: f, merges: make(map[[2]int32]merge, len(f.Merges)), unk: -1}
	for rank, pair := range f.Merges {
		left, ok1 := f.Vocab[pair[0]]
		right, ok2 := f.Vocab[pair[1]]
		id, ok3 := f.Vocab[pair[0]+pair[1]]
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("merge %d: %q is not in the vocabulary", rank, pair)
		}
		b.merges[[2]int32{left, right}] = merge{int32(rank), id}
	}
	b.Merges = nil // the map has them
	if f.UnkToken != nil {
		var ok bool
		if b.unk, ok = f.Vocab[*f.UnkToken]; !ok {
			return nil, fmt.Errorf("unk_token %q is not in the vocabulary", *f.UnkToken)
		}
	}
	return b.encode, nil
}

// symbol is an element of a list. It is merged into the one before if it has no characters.
type symbol struct {
	piece
	before, next int32 // −1 at the ends
}

// candidates is a heap of pairs of symbols that may be merged, by rank and then by place.
type candidates []candidate

type candidate struct {
	merge
	at int32 // the left symbol
}

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

func (b *bpe) encode(word []rune) ([]piece, error) {
	if b.IgnoreMerges {
		if id, ok := b.Vocab[string(word)]; ok {
			return []piece{{id, int32(len(word))}}, nil
		}
	}
	list, err := b.symbols(word)
	if err != nil {
		return nil, err
	}
	queue := &candidates{}
	offer := func(at int32) {
		if at < 0 || list[at].next < 0 {
			return
		}
		if m, ok := b.merges[[2]int32{list[at].id, list[list[at].next].id}]; ok {
			heap.Push(queue, candidate{m, at})
		}
	}
	for i := range list {
		offer(int32(i))
	}
	for queue.Len() > 0 {
		c := heap.Pop(queue).(candidate)
		left := &list[c.at]
		if left.characters == 0 || left.next < 0 {
			continue
		}
		right := &list[left.next]
		if m, ok := b.merges[[2]int32{left.id, right.id}]; !ok || m != c.merge {
			continue // one of them has changed since
		}
		left.piece = piece{c.id, left.characters + right.characters}
		right.characters = 0
		if left.next = right.next; left.next >= 0 {
			list[left.next].before = c.at
		}
		offer(left.before)
		offer(c.at)
	}
	var out []piece
	for at := int32(0); at >= 0; at = list[at].next {
		out = append(out, list[at].piece)
	}
	return out, nil
}

func (b *bpe) symbols(word []rune) ([]symbol, error) {
	list := make([]symbol, 0, len(word))
	for _, r := range word {
		id, ok := b.Vocab[string(r)]
		switch last := len(list) - 1; {
		case !ok && b.unk < 0:
			return nil, fmt.Errorf("%q is not in the vocabulary, and there is no unk_token", r)
		case !ok && b.FuseUnk && last >= 0 && list[last].id == b.unk:
			list[last].characters++
			continue
		case !ok:
			id = b.unk
		}
		n := int32(len(list))
		list = append(list, symbol{piece{id, 1}, n - 1, n + 1})
	}
	list[len(list)-1].next = -1
	return list, nil
}
