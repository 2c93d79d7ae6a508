package baseline

// staleSWA is SWA with the last checkpoint's batch-norm statistics. It shows the cost of skipping the batch-norm
// update.
var staleSWA = &Method{
	Key:    StaleSWA,
	Name:   called("SWA, stale BN"),
	Scores: true,
	Needs: func(in *Inputs) string {
		if !in.Runs[0].Network.Recomputes() {
			return "batch norm"
		}
		return ""
	},
	Cost: oneNetwork,
	Run: func(w *work) error {
		s, err := w.swa(0)
		if err != nil {
			return err
		}
		p, n := w.predicted(), w.Runs[0].Network
		p.StaleBN = true
		stale, err := n.State(s.parameters)
		if err == nil {
			err = w.member(p, n, "SWA", 1, s.parameters, stale)
		}
		if err != nil {
			return err
		}
		return w.yield(p)
	},
}
