package report

import "slices"

// bands fills where the value is at least level, with the value linear in each of
// the four triangles between the corners of a cell and its middle. Cells with a
// corner that is not finite stay blank.
func (c *chart) bands(s *Surface, level float64, col colour) {
	var paths [][]at
	for j := range len(s.Y) - 1 {
		from := -1 // first of a run of cells that lie above as a whole
		flush := func(to int) {
			if from >= 0 {
				paths = append(paths, c.cells(s, j, from, to))
				from = -1
			}
		}
		for i := range len(s.X) - 1 {
			corners := cellCorners(s, i, j)
			low := min(corners[0].z, corners[1].z, corners[2].z, corners[3].z)
			switch {
			case !finiteCell(corners):
				flush(i)
			case low >= level:
				if from < 0 {
					from = i
				}
			default:
				flush(i)
				paths = append(paths, c.clipped(corners, level)...)
			}
		}
		flush(len(s.X) - 1)
	}
	if len(paths) > 0 {
		// A thin line of the same colour closes the seams between cells.
		c.shapes = append(c.shapes, shape{paths: paths, closed: true, pen: pen{colour: col, fill: 1, stroke: 0.4}})
	}
}

// A height is a point of a surface.
type height struct{ x, y, z float64 }

// cellCorners go around the cell.
func cellCorners(s *Surface, i, j int) [4]height {
	return [4]height{
		{s.X[i], s.Y[j], s.Z[j][i]}, {s.X[i+1], s.Y[j], s.Z[j][i+1]},
		{s.X[i+1], s.Y[j+1], s.Z[j+1][i+1]}, {s.X[i], s.Y[j+1], s.Z[j+1][i]},
	}
}

func finiteCell(corners [4]height) bool {
	return !slices.ContainsFunc(corners[:], func(h height) bool { return !plottable(h.z) })
}

// cells is the rectangle of the cells from one to before another.
func (c *chart) cells(s *Surface, j, from, to int) []at {
	return []at{c.place(s.X[from], s.Y[j]), c.place(s.X[to], s.Y[j]), c.place(s.X[to], s.Y[j+1]), c.place(s.X[from], s.Y[j+1])}
}

// clipped returns the parts of a cell's triangles that are at least at level.
func (c *chart) clipped(corners [4]height, level float64) [][]at {
	var middle height
	for _, h := range corners {
		middle.x, middle.y, middle.z = middle.x+h.x/4, middle.y+h.y/4, middle.z+h.z/4
	}
	var paths [][]at
	for k := range corners {
		if path := above([3]height{corners[k], corners[(k+1)%4], middle}, level); path != nil {
			placed := make([]at, len(path))
			for i, p := range path {
				placed[i] = c.place(p.x, p.y)
			}
			paths = append(paths, placed)
		}
	}
	return paths
}

// above clips a triangle to where it is at least at level (Sutherland and Hodgman
// 1974), nil if nothing is.
func above(triangle [3]height, level float64) []at {
	var out []at
	for k, p := range triangle {
		q := triangle[(k+1)%3]
		if p.z >= level {
			out = append(out, at{p.x, p.y})
		}
		if (p.z >= level) != (q.z >= level) {
			t := (level - p.z) / (q.z - p.z)
			out = append(out, at{p.x + t*(q.x-p.x), p.y + t*(q.y-p.y)})
		}
	}
	return out
}
