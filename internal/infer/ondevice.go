package infer

import (
	"context"
	"fmt"
	"sync"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// keepsShare is the part of the room for members that the examples of a chunk may take on a device.
const keepsShare = 4

// onDevice holds the inputs of a chunk's batches on a device. So one copy serves all groups of members.
type onDevice struct {
	mu      sync.Mutex
	batches map[deviceBatch][]ort.Tensor
}

// deviceBatch names the examples first … first+rows−1 of a chunk as inputs of a graph.
type deviceBatch struct {
	graph       *Graph
	first, rows int
}

// name names the batch on a device. ok is false if it does not stay there. Then there is no room for a whole chunk, or the
// next group has other open examples.
func (b *batch) name(m *loaded) (name deviceBatch, ok bool) {
	return deviceBatch{m.Graph, b.rows[0], len(b.rows)}, b.plan.keepsInputs && b.settle == nil && b.fits.Load() == 0
}

// inputs returns the inputs of the batch for models of a group. The function done ends their use.
func (b *batch) inputs(ctx context.Context, m *loaded) (inputs []ort.Tensor, done func(), err error) {
	name, keep := b.name(m)
	at := &b.in.onDevice
	if kept := at.get(name); keep && kept != nil {
		return kept, func() {}, nil
	}
	inputs, values, err := b.load(m.Session)
	done = func() { b.giveBack(values) }
	if err != nil {
		return nil, done, err
	}
	inputs, err = m.Carry(ctx, inputs)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", m.Name, err)
	case keep && inputs[0].OnDevice():
		at.put(name, inputs)
	default:
		done = func() { ort.Free(inputs); b.giveBack(values) }
	}
	return inputs, done, err
}

func (d *onDevice) get(name deviceBatch) []ort.Tensor {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.batches[name]
}

func (d *onDevice) put(name deviceBatch, inputs []ort.Tensor) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.batches == nil {
		d.batches = map[deviceBatch][]ort.Tensor{}
	}
	d.batches[name] = inputs
}

// drop frees a batch that nobody uses.
func (d *onDevice) drop(name deviceBatch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ort.Free(d.batches[name])
	delete(d.batches, name)
}

// clear frees all batches, after the last group.
func (d *onDevice) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, inputs := range d.batches {
		ort.Free(inputs)
	}
	d.batches = nil
}
