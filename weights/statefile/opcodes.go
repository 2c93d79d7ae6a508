package statefile

import (
	"bytes"
	"encoding/binary"
	"math"
)

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
