package show

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/task"
)

// sameStd says that one network that predicts no variance gives all rows the same standard deviation. A reader would take it for
// an uncertainty of each row.
func (r sentences) sameStd() []string {
	m := r.verdict.Choice
	if m == nil || m.Networks != 1 || task.Missing(r.Task) == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s gives each row the same standard deviation, the usual error. It does not tell uncertain rows from "+
		"sure ones.", strings.ToUpper(short(m)[:1])+short(m)[1:])}
}
