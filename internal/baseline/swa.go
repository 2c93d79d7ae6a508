package baseline

import "github.com/swagwrap/swagwrap/calibrate"

// swa is the mean of the weights.
var swa = &Method{From: fromSWA, Key: SWA, Name: called("SWA"), Cost: oneNetwork, Run: func(w *work) error { return w.scaledSWA("") }}

// scaledSWA yields SWA, to be calibrated by a scaler or by none.
func (w *work) scaledSWA(by calibrate.Scaler) error {
	p, err := w.swaOf()
	if err != nil {
		return err
	}
	p = w.as(p)
	p.Scaler = by
	return w.yield(p)
}
