package statefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// A machine executes the stack operations of pickles and makes no calls. It does not recurse, so deep nesting costs
// no more than length.
type machine struct {
	data   []byte
	pos    int
	budget *budget

	stack []any
	marks []int // heights of the stack
	memo  []any
	high  [2]int // the largest heights of stack and marks so far, already paid for

	// persistent lists the persistent ids, in the order of the file.
	persistent []*persistent
	err        error // the first
}

// Estimated bytes of a kept value. They cover the value, the interfaces that hold it, and a share of the slices that
// grew for it.
const (
	costItem = 16 // an item of a tuple, which is allocated at once
	costSlot = 24 // a slot of a stack, a memo or a list
	costPair = 48
	costText = 24
	costList = 32
	costNode = 64
	costName = 128 // a name in a map
	costLook = 8   // no memory, but time: one value may be in many places
)

// A budget is the number of bytes that values may still take.
type budget struct{ left int64 }

// newBudget allows twice as many bytes as the file has, plus the bytes that small files need. The garbage collector
// usually doubles that. So the memory taken stays below 4 × file + 64 MB.
func newBudget(file int) *budget { return &budget{2*int64(file) + 28<<20} }

var errBudget = errors.New("its objects would take more memory than its size justifies")

func (b *budget) spend(n int64) error {
	if b.left -= n; b.left < 0 {
		return errBudget
	}
	return nil
}

// hole marks an unused index of a memo.
type hole struct{}

// load runs one pickle, from pos to its STOP, and returns its value.
func (m *machine) load() (any, error) {
	m.stack, m.marks, m.memo = nil, nil, nil
	m.high = [2]int{}
	for m.err == nil {
		at := m.pos
		op := m.byte()
		if m.err != nil {
			break
		}
		if op == opStop {
			v := m.pop()
			if m.err == nil {
				return v, nil
			}
		}
		if !m.literal(op) && !m.container(op) && !m.object(op) && !m.arrange(op) {
			m.fail("opcode 0x%02x", op)
		}
		if m.err != nil {
			return nil, fmt.Errorf("pickle, byte %d: %w", at, m.err)
		}
	}
	return nil, fmt.Errorf("pickle, byte %d: %w", m.pos, m.err)
}

func (m *machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

func (m *machine) spend(n int64) {
	if err := m.budget.spend(n); err != nil && m.err == nil {
		m.err = err
	}
}

// take returns the next n bytes.
func (m *machine) take(n uint64) []byte {
	if n > uint64(len(m.data)-m.pos) {
		m.fail("%d bytes wanted, %d left: truncated", n, len(m.data)-m.pos)
		return nil
	}
	b := m.data[m.pos : m.pos+int(n) : m.pos+int(n)]
	m.pos += int(n)
	return b
}

func (m *machine) byte() byte {
	if b := m.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

// uint returns the next n bytes as a little-endian number.
func (m *machine) uint(n uint64) (v uint64) {
	for i, b := range m.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (m *machine) push(v any) {
	if m.stack = append(m.stack, v); len(m.stack) > m.high[0] {
		m.high[0] = len(m.stack)
		m.spend(costSlot)
	}
}

// frameStart is the height below which the current operation must not reach.
func (m *machine) frameStart() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

// pop removes and returns the value on top of the stack.
func (m *machine) pop() any {
	if v := m.popN(1); len(v) == 1 {
		return v[0]
	}
	return nil
}

// popN removes and returns the n values on top of the stack. They are valid until the next push.
func (m *machine) popN(n int) []any {
	from := len(m.stack) - n
	if from < m.frameStart() {
		m.fail("the stack is empty")
		return nil
	}
	v := m.stack[from:]
	m.stack = m.stack[:from]
	return v
}

// popMark removes the last mark, and removes and returns the values above it.
func (m *machine) popMark() []any {
	if len(m.marks) == 0 {
		m.fail("no mark on the stack")
		return nil
	}
	v := m.popN(len(m.stack) - m.frameStart())
	m.marks = m.marks[:len(m.marks)-1]
	return v
}

func (m *machine) top() any {
	if len(m.stack) <= m.frameStart() {
		m.fail("the stack is empty")
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// put stores the value on top of the stack at memo index i. Every index costs the pickle at least two bytes. So an
// honest index is below the number of bytes read.
func (m *machine) put(i uint64) {
	v := m.top()
	if i > uint64(m.pos) {
		m.fail("memo index %d after %d bytes", i, m.pos)
	}
	for m.err == nil && uint64(len(m.memo)) <= i {
		m.memo = append(m.memo, hole{})
		m.spend(costSlot)
	}
	if m.err == nil {
		m.memo[i] = v
	}
}

func (m *machine) get(i uint64) {
	if i < uint64(len(m.memo)) && m.memo[i] != any(hole{}) {
		m.push(m.memo[i])
		return
	}
	m.fail("memo index %d: never put", i)
}

// arrange executes the operations on the stack and the memo.
func (m *machine) arrange(op byte) bool {
	switch op {
	case opProto:
		if v := m.byte(); v > 5 {
			m.fail("pickle protocol %d, want at most 5", v)
		}
	case opFrame:
		m.take(8)
	case opMark:
		if m.marks = append(m.marks, len(m.stack)); len(m.marks) > m.high[1] {
			m.high[1] = len(m.marks)
			m.spend(costSlot)
		}
	case opPop:
		if n := len(m.marks); n > 0 && m.marks[n-1] == len(m.stack) { // as in Python
			m.marks = m.marks[:n-1]
		} else {
			m.pop()
		}
	case opPopMark:
		m.popMark()
	case opDup:
		m.push(m.top())
	case opBinPut:
		m.put(m.uint(1))
	case opLongBinPut:
		m.put(m.uint(4))
	case opMemoize:
		m.put(uint64(len(m.memo)))
	case opBinGet:
		m.get(m.uint(1))
	case opLongBinGet:
		m.get(m.uint(4))
	default:
		return false
	}
	return true
}

// The operations of pickle protocols 2 to 5, as Python's pickletools names them. Those that only Python 2 or older
// protocols write are missing, and so are the operations for codes that programs agree on (EXT1 to EXT4).
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opDup             = '2'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opBinPersID       = 'Q'
	opReduce          = 'R'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opGlobal          = 'c'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opEmptyList       = ']'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opBinFloat        = 'G'
	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjEx        = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
)

// literal pushes the value that the operation contains.
func (m *machine) literal(op byte) bool {
	switch op {
	case opNone:
		m.push(nil)
	case opNewTrue, opNewFalse:
		m.push(op == opNewTrue)
	case opBinInt:
		m.push(int64(int32(m.uint(4))))
	case opBinInt1:
		m.push(int64(m.uint(1)))
	case opBinInt2:
		m.push(int64(m.uint(2)))
	case opLong1:
		m.long(m.uint(1))
	case opLong4:
		m.long(m.uint(4))
	case opBinFloat:
		if b := m.take(8); b != nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
	case opShortBinUnicode:
		m.text(m.take(m.uint(1)))
	case opBinUnicode:
		m.text(m.take(m.uint(4)))
	case opBinUnicode8:
		m.text(m.take(m.uint(8)))
	case opShortBinBytes:
		m.blob(m.take(m.uint(1)))
	case opBinBytes:
		m.blob(m.take(m.uint(4)))
	case opBinBytes8, opByteArray8:
		m.blob(m.take(m.uint(8)))
	default:
		return false
	}
	return true
}

func (m *machine) text(b []byte) {
	m.spend(costText)
	m.push(text(b))
}

func (m *machine) blob(b []byte) {
	m.spend(costText)
	m.push(blob(b))
}

// long pushes the integer in the next n bytes.
func (m *machine) long(n uint64) {
	l := long(m.take(n))
	if v, ok := l.int64(); ok {
		m.push(v)
		return
	}
	m.spend(costText)
	m.push(l)
}

// line returns the bytes up to the next line feed, which ends a name.
func (m *machine) line() []byte {
	n := bytes.IndexByte(m.data[m.pos:], '\n')
	if n < 0 {
		m.fail("a line without an end: truncated")
		return nil
	}
	b := m.take(uint64(n))
	m.pos++
	return b
}

// container executes the operations that make and fill tuples, lists, sets and dicts.
func (m *machine) container(op byte) bool {
	switch op {
	case opEmptyTuple:
		m.tuple(nil)
	case opTuple1:
		m.tuple(m.popN(1))
	case opTuple2:
		m.tuple(m.popN(2))
	case opTuple3:
		m.tuple(m.popN(3))
	case opTuple:
		m.tuple(m.popMark())
	case opEmptyList, opEmptySet:
		m.list(nil)
	case opFrozenSet:
		m.list(m.popMark())
	case opEmptyDict:
		m.spend(costList)
		m.push(&dict{})
	case opAppend:
		m.append(m.popN(1))
	case opAppends, opAddItems:
		m.append(m.popMark())
	case opSetItem:
		m.set(m.popN(2))
	case opSetItems:
		m.set(m.popMark())
	default:
		return false
	}
	return true
}

func (m *machine) tuple(items []any) {
	if len(items) == 0 {
		m.push(tuple(nil))
		return
	}
	if m.spend(costText + costItem*int64(len(items))); m.err == nil {
		m.push(append(make(tuple, 0, len(items)), items...))
	}
}

func (m *machine) list(items []any) {
	m.spend(costList)
	m.push(&list{m.appended(nil, items)})
}

func (m *machine) append(items []any) {
	switch v := m.top().(type) {
	case *list:
		v.items = m.appended(v.items, items)
	case *node:
		if v.list == nil {
			m.spend(costList)
			v.list = &list{}
		}
		v.list.items = m.appended(v.list.items, items)
	case *class, *persistent:
	default:
		m.fail("items for what is no list")
	}
}

// numbersKept is the number of items after which a list keeps no more plain numbers. Lists of millions of numbers are
// a data set's indices or a history of losses. They say nothing about weights.
const numbersKept = 4096

// appended returns a list with the items added.
func (m *machine) appended(to, items []any) []any {
	for _, item := range items {
		if len(to) >= numbersKept {
			switch item.(type) {
			case nil, bool, int64, float64:
				continue
			}
		}
		if m.spend(costSlot); m.err != nil {
			break
		}
		to = append(to, item)
	}
	return to
}

func (m *machine) set(items []any) {
	switch v := m.top().(type) {
	case *dict:
		v.pairs = m.added(v.pairs, items)
	case *node:
		if v.dict == nil {
			m.spend(costList)
			v.dict = &dict{}
		}
		v.dict.pairs = m.added(v.dict.pairs, items)
	case *class, *persistent:
	default:
		m.fail("items for what is no dict")
	}
}

// added returns a dict's items with more items added. items holds keys and values in turn.
func (m *machine) added(to []pair, items []any) []pair {
	if len(items)%2 != 0 {
		m.fail("a key without a value")
	}
	for i := 0; m.err == nil && i+1 < len(items); i += 2 {
		if m.spend(costPair); m.err == nil {
			to = append(to, pair{items[i], items[i+1]})
		}
	}
	return to
}

// object executes the operations for which Python looks something up or calls something. Here they only make nodes.
func (m *machine) object(op byte) bool {
	switch op {
	case opGlobal:
		module := m.line()
		m.class(module, m.line())
	case opStackGlobal:
		v := m.popN(2)
		if len(v) < 2 {
			return true
		}
		module, ok1 := v[0].(text)
		name, ok2 := v[1].(text)
		if !ok1 || !ok2 {
			m.fail("a name that is no text")
		}
		m.class(module, name)
	case opReduce, opNewObj:
		if v := m.popN(2); len(v) == 2 {
			m.node(v[0], v[1])
		}
	case opNewObjEx:
		if v := m.popN(3); len(v) == 3 {
			m.node(v[0], v[1]) // keywords are not read
		}
	case opBuild:
		m.build(m.pop())
	case opBinPersID:
		m.persist(m.pop())
	default:
		return false
	}
	return true
}

// class pushes the name of an object that Python would look up in a module.
func (m *machine) class(module, name []byte) {
	const most = 1 << 10
	if len(module) > most || len(name) > most {
		m.fail("a name of %d bytes, want at most %d", max(len(module), len(name)), most)
		return
	}
	m.spend(costList + int64(len(module)+len(name)))
	m.push(&class{string(module) + "." + string(name)})
}

func (m *machine) node(callee, args any) {
	m.spend(costNode)
	m.push(&node{callee: callee, args: args})
}

func (m *machine) build(state any) {
	switch v := m.top().(type) {
	case *node:
		v.state = state
	case *dict, *list, *class, *persistent: // their attributes are not read
	default:
		m.fail("a state for what has none")
	}
}

func (m *machine) persist(id any) {
	p := &persistent{id}
	m.spend(costList)
	m.persistent = append(m.persistent, p)
	m.push(p)
}

// The values of a pickle as Go values: nil (None), bool, int64, float64, and these. text, blob and long are parts of
// the file's bytes, not copies.
type (
	text  []byte
	blob  []byte // bytes, bytearray
	long  []byte // an int beyond int64: little-endian, two's complement
	tuple []any

	list struct{ items []any } // list, set, frozenset

	dict struct{ pairs []pair }

	pair struct{ key, value any }

	// A class is a name that Python would look up: a class or a function.
	class struct{ name string } // with its module, such as "collections.OrderedDict"

	// A node is the result of a call that Python would make.
	node struct {
		callee any // usually a *class
		args   any // usually a tuple
		state  any // the argument of BUILD
		list   *list
		dict   *dict // items, if the object is a list or a dict
	}

	// A persistent is a reference to an object outside the pickle.
	persistent struct{ id any }
)

// className returns the name of the function that was called to make v, or "".
func className(v any) string {
	if n, ok := v.(*node); ok {
		if c, ok := n.callee.(*class); ok {
			return c.name
		}
	}
	return ""
}

// entries returns the items of a dict, or of an object that is a dict, in the order of the file.
func entries(v any) []pair {
	switch v := v.(type) {
	case *dict:
		return v.pairs
	case *node:
		if v.dict != nil {
			return v.dict.pairs
		}
	}
	return nil
}

// elements returns the items of a list, set or tuple.
func elements(v any) []any {
	switch v := v.(type) {
	case tuple:
		return v
	case *list:
		return v.items
	case *node:
		switch className(v) {
		case "torch.Size", "builtins.set", "__builtin__.set", "builtins.frozenset", "__builtin__.frozenset":
			if inner := argument(v, 0); inner != any(v) {
				if _, again := inner.(*node); !again {
					return elements(inner)
				}
			}
		}
		if v.list != nil {
			return v.list.items
		}
	}
	return nil
}

// argument returns the i-th argument of n, or nil.
func argument(n *node, i int) any {
	if args, ok := n.args.(tuple); ok && i < len(args) {
		return args[i]
	}
	return nil
}

// lookup returns the value under key in a list of items.
func lookup(pairs []pair, key string) (any, bool) {
	for i := len(pairs) - 1; i >= 0; i-- { // in Python, the last one counts
		if k, ok := pairs[i].key.(text); ok && string(k) == key {
			return pairs[i].value, true
		}
	}
	return nil, false
}

// attributes returns the attributes of an object, from the state that BUILD gave it. The state is a dict, or a tuple
// of a dict and a second one for its slots.
func attributes(n *node) []pair {
	if t, ok := n.state.(tuple); ok && len(t) == 2 {
		return entries(t[0])
	}
	return entries(n.state)
}

// describe describes v in a few words, for lists of ignored entries.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool, int64, float64:
		return fmt.Sprint(v)
	case long:
		return "a large integer"
	case text:
		return "a text"
	case blob:
		return fmt.Sprintf("%d bytes", len(v))
	case tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *list:
		return fmt.Sprintf("a list of %d", len(v.items))
	case *dict:
		return fmt.Sprintf("a dict of %d", len(v.pairs))
	case *Tensor:
		return "a tensor"
	case *class:
		return "the name " + shorten(v.name)
	case *node:
		name := className(v)
		switch {
		case rebuildName(v) != "":
			return "a tensor"
		case strings.HasSuffix(name, "multiarray._reconstruct"):
			return "a NumPy array"
		case strings.HasSuffix(name, "multiarray.scalar"):
			return "a NumPy number"
		case name != "":
			return "an object of " + shorten(name)
		}
	}
	return "an object"
}

// shorten cuts a text of the file to a length that fits a message, and replaces characters that do not print.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case long:
		return v.int64()
	}
	return 0, false
}

// int64 returns the number if it fits.
func (l long) int64() (int64, bool) {
	if len(l) > 8 {
		return 0, false
	}
	var n uint64
	for i := len(l) - 1; i >= 0; i-- {
		n = n<<8 | uint64(l[i])
	}
	if k := len(l); k > 0 && k < 8 && l[k-1]&0x80 != 0 {
		n |= ^uint64(0) << (8 * k)
	}
	return int64(n), true
}

// is reports whether v is the number of these bytes.
func is(v any, number long) bool {
	l, ok := v.(long)
	return ok && bytes.Equal(l, number)
}
