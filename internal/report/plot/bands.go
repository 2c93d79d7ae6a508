package plot

import (
	"slices"

	"gonum.org/v1/plot/plotter"
)

// band returns the region where the value is at least level. The value is linear in each of the four triangles
// between the corners of a cell and its middle. Cells with a corner that is not finite are left out. Gonum's heat map
// only draws one block of colour per grid point.
func (s *Surface) band(level float64) []plotter.XYs {
	var rings []plotter.XYs
	for j := range len(s.Y) - 1 {
		from := -1 // first of a run of cells that lie completely above
		flush := func(to int) {
			if from >= 0 {
				rings = append(rings, plotter.XYs{{X: s.X[from], Y: s.Y[j]}, {X: s.X[to], Y: s.Y[j]}, {X: s.X[to], Y: s.Y[j+1]}, {X: s.X[from], Y: s.Y[j+1]}})
				from = -1
			}
		}
		for i := range len(s.X) - 1 {
			corners := s.corners(i, j)
			low := min(corners[0].Z, corners[1].Z, corners[2].Z, corners[3].Z)
			switch {
			case slices.ContainsFunc(corners[:], func(p plotter.XYZ) bool { return !plottable(p.Z) }):
				flush(i)
			case low >= level:
				if from < 0 {
					from = i
				}
			default:
				flush(i)
				rings = append(rings, clipped(corners, level)...)
			}
		}
		flush(len(s.X) - 1)
	}
	return rings
}

// corners returns the corners in order around the cell.
func (s *Surface) corners(i, j int) [4]plotter.XYZ {
	return [4]plotter.XYZ{
		{X: s.X[i], Y: s.Y[j], Z: s.Z[j][i]}, {X: s.X[i+1], Y: s.Y[j], Z: s.Z[j][i+1]},
		{X: s.X[i+1], Y: s.Y[j+1], Z: s.Z[j+1][i+1]}, {X: s.X[i], Y: s.Y[j+1], Z: s.Z[j+1][i]},
	}
}

// clipped returns the parts of a cell's triangles that are at least at level.
func clipped(corners [4]plotter.XYZ, level float64) []plotter.XYs {
	var middle plotter.XYZ
	for _, p := range corners {
		middle.X, middle.Y, middle.Z = middle.X+p.X/4, middle.Y+p.Y/4, middle.Z+p.Z/4
	}
	var rings []plotter.XYs
	for k := range corners {
		if ring := above([3]plotter.XYZ{corners[k], corners[(k+1)%4], middle}, level); ring != nil {
			rings = append(rings, ring)
		}
	}
	return rings
}

// above clips a triangle to the part that is at least at level (Sutherland and Hodgman 1974). It returns nil if
// nothing is left.
func above(triangle [3]plotter.XYZ, level float64) plotter.XYs {
	var out plotter.XYs
	for k, p := range triangle {
		q := triangle[(k+1)%3]
		if p.Z >= level {
			out = append(out, plotter.XY{X: p.X, Y: p.Y})
		}
		if (p.Z >= level) != (q.Z >= level) {
			t := (level - p.Z) / (q.Z - p.Z)
			out = append(out, plotter.XY{X: p.X + t*(q.X-p.X), Y: p.Y + t*(q.Y-p.Y)})
		}
	}
	return out
}
