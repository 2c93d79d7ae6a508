package ort

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// What ONNX Runtime 1.30 says of models that it refuses or cannot run, and what is
// left of it.
func TestWithoutSources(t *testing.T) {
	for printed, want := range map[string]string{
		"Non-zero status code returned while running Reshape node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:91 onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&, onnxruntime::TensorShapeVector&, bool) input_shape_size == requested_shape_size was false. The input tensor cannot be reshaped to the requested shape. Input shape:{2,3}, requested shape:{4,5}\n": "Non-zero status code returned while running Reshape node. Name:'' Status Message: input_shape_size == requested_shape_size was false. The input tensor cannot be reshaped to the requested shape. Input shape:{2,3}, requested shape:{4,5}",
		"/onnxruntime_src/onnxruntime/core/graph/model_load_utils.h:46 void onnxruntime::model_load_utils::ValidateOpsetForDomain(const std::unordered_map<std::__cxx11::basic_string<char>, int>&, const onnxruntime::logging::Logger&, bool, const std::string&, int) ONNX Runtime only *guarantees* support for models":                                                                                                                          "ONNX Runtime only *guarantees* support for models",
		"/onnxruntime_src/onnxruntime/core/graph/model.cc:202 onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, const onnxruntime::IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::logging::Logger&, const onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported IR version: 13\n":                                                                                                          "Unsupported model IR version: 99, max supported IR version: 13",
		"Status Message: /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/squeeze.h:53 static onnxruntime::TensorShapeVector onnxruntime::SqueezeBase::ComputeOutputShape(const onnxruntime::TensorShape&, const onnxruntime::TensorShapeVector&) input_shape[i] == 1 was false. Dimension of input 1 must be 1 instead of 3. shape={2,3}":                                                                                                    "Status Message: input_shape[i] == 1 was false. Dimension of input 1 must be 1 instead of 3. shape={2,3}",
		"Status Message: /onnxruntime_src/onnxruntime/core/framework/op_kernel.cc:83 virtual OrtValue* onnxruntime::OpKernelContext::OutputMLValue(int, const onnxruntime::TensorShape&) [ONNXRuntimeError] : 1 : FAIL : tensor.cc:57 CalculateTensorStorageSize Tensor shape.Size() must be >= 0\n":                                                                                                                                                "Status Message: [ONNXRuntimeError] : 1 : FAIL : Tensor shape.Size() must be >= 0",
		"Status Message: matmul_helper.h:59 Compute MatMul dimension mismatch":     "Status Message: MatMul dimension mismatch",
		"Status Message: indices element out of data bounds, idx=9 (node a/b.c:3)": "Status Message: indices element out of data bounds, idx=9 (node a/b.c:3)",
		"/src/a.cc:1 auto ns::F(const T*) const [with T = float; int] too few":     "too few",
		"/src/a.cc:1 ns::f(std::function<void(int)>)::<lambda(long)> stopped":      "stopped",
		"/src/a.cc:1 ": "",
	} {
		if got := shorten(printed); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Errors of a real run have no places in sources either.
func TestNoSources(t *testing.T) {
	s := load(t, "where_float32.onnx", Options{})
	_, err := s.Run(context.Background(), []Tensor{{Shape: []int64{2}, F32: []float32{1, 2}}, {Shape: []int64{2}, F32: []float32{1, 2}}})
	if err == nil || codePlace.MatchString(err.Error()) || !strings.Contains(err.Error(), "Where") {
		t.Errorf("got %v", err)
	}
}

// A GPU that is gone is named in the driver's words. Other failures of CUDA are those of a node.
func TestGPULost(t *testing.T) {
	for printed, want := range map[string]string{
		"Error running network: CUDA failure 719: unspecified launch failure ; GPU=0 ; hostname=a ; expr=cudaStreamSynchronize(stream); ":                                           "unspecified launch failure",
		"Error running network: Non-zero status code returned while running Conv node. Name:'c' Status Message: CUDA failure 700: an illegal memory access was encountered ; GPU=0": "an illegal memory access was encountered",
		"Error running network: CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0 ; hostname=a":                                                                             "CUDNN_STATUS_EXECUTION_FAILED",
		"Error running network: WebGPU device was lost, reason: Unknown":                                                                                                            "device was lost",
		"Error running network: vkQueueSubmit failed with VK_ERROR_DEVICE_LOST":                                                                                                     "VK_ERROR_DEVICE_LOST",
		"Error running network: CUDA failure 1: invalid argument ; GPU=0":                                                                                                           "",
		"Error running network: CUDA failure 98: invalid device function ; GPU=0":                                                                                                   "",
	} {
		lost, ok := errors.AsType[*GPULostError](rt.failure("ONNX Runtime", "Error running network: ", errors.New(printed)))
		if ok != (want != "") || ok && (lost.Why != want || !errors.Is(lost, syscall.EIO)) {
			t.Errorf("%s: %v, want %q", printed, lost, want)
		}
	}
}

// What the machine does not give is the machine's fault, with the error number that
// says so.
func TestFailureOfTheMachine(t *testing.T) {
	for printed, want := range map[string]error{
		"Error running network: Non-zero status code returned while running MatMul node. Name:'a' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 68719476736": syscall.ENOMEM,
		"Error running network: Non-zero status code returned while running Conv node. Name:'c' Status Message: CUDA failure 2: out of memory ; GPU=0 ; hostname=a ; file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_allocator.cc ; line=41 ; expr=cudaMalloc((void**)&p, size);":                                            syscall.ENOMEM,
		"Exception during initialization: std::bad_alloc":                                   syscall.ENOMEM,
		"pthread_create failed, error code: 11 error msg: Resource temporarily unavailable": syscall.EAGAIN,
	} {
		if got := rt.failure("ONNX Runtime", "Error running network: ", errors.New(printed)); !errors.Is(got, want) || codePlace.MatchString(got.Error()) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
