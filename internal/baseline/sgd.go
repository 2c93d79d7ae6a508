package baseline

// sgd is the last checkpoint.
var sgd = &Method{
	Key:   "sgd",
	From:  fromLast,
	Name:  called("SGD, last iterate"),
	Needs: needsCheckpoints,
	Cost:  oneNetwork,
	Run: func(w *work) error {
		p, err := w.lastIterate()
		if err != nil {
			return err
		}
		return w.yield(w.as(p))
	},
}
