//go:build js && wasm

// Command wasm is package inputs in a browser. The page's worker.js calls its functions: networkInputs has open, picture,
// table and rows. Each returns an object, which has the member error if it failed.
package main

import (
	"encoding/json"
	"fmt"
	"syscall/js"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/webpage/inputs"
)

var (
	network inputs.Network
	open    *inputs.Table // the last table
)

func main() {
	js.Global().Set("networkInputs", map[string]any{
		"open": function(func(args []js.Value) (any, error) {
			if err := json.Unmarshal([]byte(args[0].String()), &network); err != nil {
				return nil, err
			}
			return map[string]any{}, network.Check()
		}),
		"picture": function(func(args []js.Value) (any, error) {
			t, seen, err := network.Read(content(args[0]))
			if err != nil {
				return nil, err
			}
			rgba := make([]byte, 4*seen.Pixels.W*seen.Pixels.H)
			for i, c := 0, seen.Pixels.C; i < seen.Pixels.W*seen.Pixels.H; i++ {
				p := seen.Pixels.Pix[c*i : c*i+c]
				rgba[4*i], rgba[4*i+1], rgba[4*i+2], rgba[4*i+3] = p[0], p[c/2], p[c-1], 255
			}
			return map[string]any{"tensors": []any{tensor(*t)}, "kind": seen.Kind, "width": seen.W, "height": seen.H,
				"seen": map[string]any{"width": seen.Pixels.W, "height": seen.Pixels.H, "rgba": array(rgba)}}, nil
		}),
		"table": function(func(args []js.Value) (any, error) {
			t, err := network.Table(args[0].String(), content(args[1]))
			if err != nil {
				return nil, err
			}
			var left []any
			for _, name := range t.Left {
				left = append(left, name)
			}
			open = t
			return map[string]any{"rows": t.Rows, "left": left}, nil
		}),
		"rows": function(func(args []js.Value) (any, error) {
			var all []any
			for _, t := range open.Batch(args[0].Int(), args[1].Int()) {
				all = append(all, tensor(t))
			}
			return map[string]any{"tensors": all}, nil
		}),
	})
	select {}
}

// function is a function for JavaScript. A panic of a decoder is the error of a damaged file.
func function(do func(args []js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) (out any) {
		defer func() {
			if r := recover(); r != nil {
				out = map[string]any{"error": fmt.Sprintf("damaged: %v", r)}
			}
		}()
		out, err := do(args)
		if err != nil {
			return map[string]any{"error": file.Cause(err).Error()}
		}
		return out
	})
}

func content(v js.Value) []byte {
	b := make([]byte, v.Get("length").Int())
	js.CopyBytesToGo(b, v)
	return b
}

func array(b []byte) js.Value {
	v := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(v, b)
	return v
}

func tensor(t inputs.Tensor) any {
	var dims []any
	for _, d := range t.Dims {
		dims = append(dims, float64(d))
	}
	return map[string]any{"name": t.Name, "type": t.Type, "dims": dims, "data": array(t.Data)}
}
