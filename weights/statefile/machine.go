package statefile

import (
	"errors"
	"fmt"
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

// floor is the height below which the current operation must not reach.
func (m *machine) floor() int {
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
	if from < m.floor() {
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
	v := m.popN(len(m.stack) - m.floor())
	m.marks = m.marks[:len(m.marks)-1]
	return v
}

func (m *machine) top() any {
	if len(m.stack) <= m.floor() {
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
