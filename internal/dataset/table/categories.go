//go:build !noparquet

package table

import (
	"slices"

	"github.com/parquet-go/parquet-go"
)

// categories keeps the texts of the dictionary of a page, in their order. All row groups must have the same.
func (r *leafReader) categories(page parquet.Page) {
	d := page.Dictionary()
	if !r.column.text || r.mixed || d == nil || r.leaf.Type().Kind() != parquet.ByteArray || d.Len() > mostCategories {
		r.mixed = true
		return
	}
	if d == r.dictionary {
		return
	}
	r.dictionary = d
	texts := make([]string, d.Len())
	for i := range texts {
		texts[i] = string(d.Index(int32(i)).ByteArray())
	}
	if r.column.Categories == nil {
		r.column.Categories = texts
	}
	r.mixed = !slices.Equal(r.column.Categories, texts)
}

// mostCategories bounds the categories of a column. ImageNet-21k has fewer classes.
const mostCategories = 1 << 16

// endCategories keeps the dictionary only if the file says that it has the categories of the column.
func (r *leafReader) endCategories(noted arrowField) {
	c := r.column
	if r.mixed || !noted.categories || noted.count > 0 && noted.count != len(c.Categories) {
		c.Categories = nil
	}
	c.Ordered = noted.ordered && c.Categories != nil
}
