package ort

/*
#include <stddef.h>
#include <stdint.h>

// Places of functions in ONNX Runtime's table, which only grows: TestTable compares them with the header. A status that is
// not NULL is an error.
enum {
	get_error_message = 2, create_tensor_with_data = 49, get_tensor_data = 51, get_element_type = 60, get_dimensions_count = 61,
	get_dimensions = 62, get_type_and_shape = 65, create_memory_info = 68, allocator_free = 76, get_default_allocator = 78,
	free_status = 93, release_memory_info = 94, release_value = 96, release_type_and_shape = 99, run_with_binding = 133,
	create_io_binding = 134, release_io_binding = 135, bind_input = 136, bind_output_to_device = 138, get_bound_outputs = 140
};

#define CALL(place, ...) ((void *(*)(__VA_ARGS__))table[place])
#define FREE(place, what) ((void (*)(void *))table[place])(what)

static const char *status_message(void **table, void *status) {
	return ((const char *(*)(void *))table[get_error_message])(status);
}

static void status_free(void **table, void *status) { FREE(free_status, status); }

static void *memory_info(void **table, const char *name, int id, void **info) {
	return CALL(create_memory_info, const char *, int, int, int, void **)(name, 0, id, 0, info);
}

static void value_free(void **table, void *value) { FREE(release_value, value); }

// host_value wraps memory of the process, which must stay where it is until the value is freed.
static void *host_value(void **table, void *info, void *data, size_t bytes, int64_t *shape, size_t rank, int type, void **value) {
	return CALL(create_tensor_with_data, void *, void *, size_t, int64_t *, size_t, int, void **)(info, data, bytes, shape, rank, type, value);
}

// value_about returns the type and rank of a tensor, its first dimensions and its data.
static void *value_about(void **table, void *value, int *type, size_t *rank, int64_t *shape, size_t most, void **data) {
	void *about = NULL;
	void *status = CALL(get_type_and_shape, void *, void **)(value, &about);
	if (status == NULL)
		status = CALL(get_element_type, void *, int *)(about, type);
	if (status == NULL)
		status = CALL(get_dimensions_count, void *, size_t *)(about, rank);
	if (status == NULL && *rank <= most)
		status = CALL(get_dimensions, void *, int64_t *, size_t)(about, shape, *rank);
	if (status == NULL)
		status = CALL(get_tensor_data, void *, void **)(value, data);
	if (about != NULL)
		FREE(release_type_and_shape, about);
	return status;
}

// bound_run runs a session. Each output stays in the memory that its info names.
static void *bound_run(void **table, void *session, void *options, size_t inputs, char **names, void **values,
	size_t outputs, char **wanted, void **infos, void **results) {
	void *binding = NULL, *allocator = NULL;
	void **list = NULL;
	size_t count = 0;
	void *status = CALL(create_io_binding, void *, void **)(session, &binding);
	for (size_t i = 0; i < inputs && status == NULL; i++)
		status = CALL(bind_input, void *, const char *, void *)(binding, names[i], values[i]);
	for (size_t i = 0; i < outputs && status == NULL; i++)
		status = CALL(bind_output_to_device, void *, const char *, void *)(binding, wanted[i], infos[i]);
	if (status == NULL)
		status = CALL(run_with_binding, void *, void *, void *)(session, options, binding);
	if (status == NULL)
		status = CALL(get_default_allocator, void **)(&allocator);
	if (status == NULL)
		status = CALL(get_bound_outputs, void *, void *, void ***, size_t *)(binding, allocator, &list, &count);
	if (status == NULL) {
		for (size_t i = 0; i < count; i++) {
			if (i < outputs)
				results[i] = list[i];
			else
				FREE(release_value, list[i]);
		}
		if (list != NULL)
			CALL(allocator_free, void *, void *)(allocator, list);
	}
	if (binding != NULL)
		FREE(release_io_binding, binding);
	return status;
}
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/weights"
)

// A value is a tensor of ONNX Runtime, in the memory of the process or of a device.
type value struct {
	table *unsafe.Pointer
	at    unsafe.Pointer
	shape []int64
	dtype string
	of    Provider // whose device it is on
}

// free frees a value. One on a device waits for its turn. WebGPU gave memory that was freed during a run to two values, and
// scores were wrong from then on.
func (v *value) free() {
	if v == nil || v.at == nil {
		return
	}
	if v.of.kind().turns {
		leave, _ := v.of.enter(context.Background()) // this context does not end
		defer leave()
	}
	C.value_free(v.table, v.at)
	v.at = nil
}

func freeAll(values []*value) {
	for _, v := range values {
		v.free()
	}
}

// table returns ONNX Runtime's functions.
func (r *Runtime) table() *unsafe.Pointer { return apiTable(r.api) }

// check converts a status to an error, and frees it.
func check(table *unsafe.Pointer, status unsafe.Pointer) error {
	if status == nil {
		return nil
	}
	defer C.status_free(table, status)
	return errors.New(C.GoString(C.status_message(table, status)))
}

// memoryInfo returns ONNX Runtime's description of a memory. It lives as long as the process.
func (r *Runtime) memoryInfo(name string, device int) (unsafe.Pointer, error) {
	r.infos.Lock()
	defer r.infos.Unlock()
	key := fmt.Sprint(name, " ", device)
	if info := r.infos.of[key]; info != nil {
		return info, nil
	}
	text := cString(name)
	defer freeString(text)
	var info unsafe.Pointer
	if err := check(r.table(), C.memory_info(r.table(), (*C.char)(text), C.int(device), &info)); err != nil {
		return nil, err
	}
	if r.infos.of == nil {
		r.infos.of = map[string]unsafe.Pointer{}
	}
	r.infos.of[key] = info
	return info, nil
}

// hostMemory is the name of the memory of the process.
const hostMemory = "Cpu"

// host wraps a tensor. Its memory is pinned by pins until the value is freed.
func (r *Runtime) host(t Tensor, pins *runtime.Pinner) (*value, error) {
	data, bytes, of := t.memory()
	v, err := r.wrap(t.Shape, data, bytes, of, pins)
	if err == nil {
		v.dtype = t.DType()
	}
	return v, err
}

// wrap wraps elements of the type with ONNX's number of.
func (r *Runtime) wrap(shape []int64, data unsafe.Pointer, bytes int, of int32, pins *runtime.Pinner) (*value, error) {
	info, err := r.memoryInfo(hostMemory, 0)
	if err != nil {
		return nil, err
	}
	if bytes == 0 {
		data = unsafe.Pointer(new(int64)) // ONNX Runtime wants an address
	}
	r.copied.to.Add(int64(bytes))
	pins.Pin(data)
	dims := append(make([]int64, 0, len(shape)+1), shape...)
	first := unsafe.SliceData(dims[:cap(dims)])
	v := &value{table: r.table(), shape: shape}
	return v, check(v.table, C.host_value(v.table, info, data, C.size_t(bytes), (*C.int64_t)(first), C.size_t(len(shape)),
		C.int(of), &v.at))
}

// size returns the bytes of the elements.
func (t Tensor) size() int64 {
	_, n, _ := t.memory()
	return int64(n)
}

// memory returns the address of the elements, their bytes and ONNX's number of their type.
func (t Tensor) memory() (at unsafe.Pointer, bytes int, of int32) {
	switch {
	case t.F32 != nil:
		return unsafe.Pointer(unsafe.SliceData(t.F32)), 4 * len(t.F32), binding.TensorElementDataTypeFloat
	case t.F64 != nil:
		return unsafe.Pointer(unsafe.SliceData(t.F64)), 8 * len(t.F64), binding.TensorElementDataTypeDouble
	case t.F16 != nil:
		return unsafe.Pointer(unsafe.SliceData(t.F16)), 2 * len(t.F16), binding.TensorElementDataTypeFloat16
	case t.U8 != nil:
		return unsafe.Pointer(unsafe.SliceData(t.U8)), len(t.U8), binding.TensorElementDataTypeUint8
	case t.I64 != nil:
		return unsafe.Pointer(unsafe.SliceData(t.I64)), 8 * len(t.I64), binding.TensorElementDataTypeInt64
	}
	return unsafe.Pointer(unsafe.SliceData(t.Raw)), len(t.Raw), int32(rawTypes[t.Type].of)
}

// about reads the shape and type of a value, and returns its elements. Those on a device cannot be read.
func (v *value) about() (data unsafe.Pointer, err error) {
	const most = 16 // dimensions
	var shape [most]int64
	var rank C.size_t
	var of C.int
	if err := check(v.table, C.value_about(v.table, v.at, &of, &rank, (*C.int64_t)(&shape[0]), most, &data)); err != nil {
		return nil, err
	}
	if rank > most {
		return nil, fmt.Errorf("a tensor of %d dimensions, want at most %d", rank, most)
	}
	v.shape = append(make([]int64, 0, rank), shape[:rank]...)
	switch of {
	case binding.TensorElementDataTypeFloat:
		v.dtype = "float32"
	case binding.TensorElementDataTypeDouble:
		v.dtype = "float64"
	case binding.TensorElementDataTypeFloat16:
		v.dtype = "float16"
	case binding.TensorElementDataTypeUint8:
		v.dtype = "uint8"
	case binding.TensorElementDataTypeInt64:
		v.dtype = "int64"
	default:
		for name, raw := range rawTypes {
			if int(raw.of) == int(of) {
				v.dtype = name
			}
		}
	}
	return data, nil
}

// tensor copies a value of the process's memory.
func (v *value) tensor() (Tensor, error) {
	data, err := v.about()
	if err != nil {
		return Tensor{}, err
	}
	n, err := weights.Elements(v.shape)
	if err != nil {
		return Tensor{}, err
	}
	t := Tensor{Shape: v.shape}
	switch v.dtype {
	case "float32":
		t.F32 = elementsAt[float32](data, n)
	case "float64":
		t.F64 = elementsAt[float64](data, n)
	case "float16":
		t.F16 = elementsAt[uint16](data, n)
	case "uint8":
		t.U8 = elementsAt[uint8](data, n)
	case "int64":
		t.I64 = elementsAt[int64](data, n)
	default:
		return t, errors.New("a value of another type is not supported")
	}
	return t, nil
}

func elementsAt[T any](data unsafe.Pointer, n int64) []T {
	return append(make([]T, 0, n), unsafe.Slice((*T)(data), n)...)
}

// bound runs a session with values. The outputs stay on the device if keep is set.
func (r *Runtime) bound(session *binding.DynamicAdvancedSession, options *binding.RunOptions, names []string, values []*value,
	wanted []string, device string, number int, keep bool) ([]*value, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	texts := make([]unsafe.Pointer, 0, len(names)+len(wanted)+1)
	for _, name := range append(names[:len(names):len(names)], wanted...) {
		texts = append(texts, cString(name))
	}
	defer func() {
		for _, t := range texts {
			freeString(t)
		}
	}()
	in := make([]unsafe.Pointer, len(values)+1)
	for i, v := range values {
		in[i] = v.at
	}
	infos, out := make([]unsafe.Pointer, len(wanted)), make([]unsafe.Pointer, len(wanted))
	for i := range wanted {
		name, id := hostMemory, 0
		if keep {
			name, id = device, number
		}
		info, err := r.memoryInfo(name, id)
		if err != nil {
			return nil, err
		}
		infos[i] = info
	}
	s, o := handles(session, options)
	err := check(r.table(), C.bound_run(r.table(), s, o, C.size_t(len(values)), (**C.char)(unsafe.Pointer(&texts[0])), &in[0],
		C.size_t(len(wanted)), (**C.char)(unsafe.Pointer(&texts[len(names)])), &infos[0], &out[0]))
	runtime.KeepAlive(values)
	if err != nil {
		return nil, err
	}
	results := make([]*value, len(out))
	for i, at := range out {
		results[i] = &value{table: r.table(), at: at}
	}
	return results, nil
}

// handles returns ONNX Runtime's own session and options. The binding keeps them in the first fields of its structs:
// TestHandles.
func handles(session *binding.DynamicAdvancedSession, options *binding.RunOptions) (s, o unsafe.Pointer) {
	inner := *(*unsafe.Pointer)(unsafe.Pointer(session))
	return *(*unsafe.Pointer)(inner), *(*unsafe.Pointer)(unsafe.Pointer(options))
}
