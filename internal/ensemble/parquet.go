package ensemble

import (
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
)

// parquetRow has all columns that a file may have, in their order. Of an example
// with an error only path, label and error are not null or empty.
type parquetRow struct {
	Path              string    `parquet:"path"`
	Label             *int64    `parquet:"label,optional"`
	Prediction        *int32    `parquet:"prediction,optional"`
	Name              *string   `parquet:"name,optional,dict"`
	Confidence        *float64  `parquet:"confidence,optional"`
	PredictiveEntropy *float64  `parquet:"predictive_entropy,optional"`
	ExpectedEntropy   *float64  `parquet:"expected_entropy,optional"`
	MutualInformation *float64  `parquet:"mutual_information,optional"`
	Top               []int32   `parquet:"top,list"`
	TopProbability    []float64 `parquet:"top_probability,list"`
	Probs             []float64 `parquet:"probs,list"`
	MemberProbs       []float32 `parquet:"member_probs,list"`
	Error             *string   `parquet:"error,optional"`
}

// rowGroupBytes bounds what a row group has in memory before it is written.
const rowGroupBytes = 32 << 20

type parquetWriter struct {
	t      *Table
	schema *parquet.Schema
	out    *parquet.GenericWriter[any]
	values parquet.Row
	row    reflect.Value // of a struct with the fields of parquetRow that are wanted
	limit  int           // rows in a group
	rows   int
}

func (t *Table) parquet(w io.Writer) RowWriter {
	wanted := map[string]bool{
		"Label":          t.labels != nil,
		"Name":           t.names != nil,
		"Top":            t.Columns.Top > 1,
		"TopProbability": t.Columns.Top > 1,
		"Probs":          t.Columns.Probabilities,
		"MemberProbs":    t.Columns.Members,
		"Error":          t.Errors,
	}
	var fields []reflect.StructField
	for f := range reflect.TypeFor[parquetRow]().Fields() {
		if want, optional := wanted[f.Name]; want || !optional {
			fields = append(fields, reflect.StructField{Name: f.Name, Type: f.Type, Tag: f.Tag})
		}
	}
	row := reflect.New(reflect.StructOf(fields)).Elem()
	bytes := 256 + 8*t.Classes
	if t.Columns.Members {
		bytes += 4 * t.Members * t.Classes
	}
	schema := parquet.SchemaOf(row.Interface())
	return &parquetWriter{t: t, row: row, limit: max(1, rowGroupBytes/bytes), schema: schema,
		out: parquet.NewGenericWriter[any](w, schema, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("swagwrap", "", ""))}
}

func (p *parquetWriter) Write(r *Row) error {
	t := p.t
	all := parquetRow{Path: t.data.Name(r.Index), Label: t.label(r.Index)}
	if r.Error != "" {
		all.Error = &r.Error
	} else {
		prediction := int32(r.Prediction)
		all.Prediction, all.Confidence = &prediction, &r.Confidence
		all.PredictiveEntropy, all.ExpectedEntropy, all.MutualInformation = &r.PredictiveEntropy, &r.ExpectedEntropy, &r.MutualInformation
		if t.names != nil {
			all.Name = &t.names[r.Prediction]
		}
		for _, top := range r.Top {
			all.Top, all.TopProbability = append(all.Top, int32(top.Class)), append(all.TopProbability, top.Probability)
		}
		all.Probs, all.MemberProbs = r.Probabilities, r.Members
	}
	from := reflect.ValueOf(all)
	for i := range p.row.NumField() {
		p.row.Field(i).Set(from.FieldByName(p.row.Type().Field(i).Name))
	}
	p.values = p.schema.Deconstruct(p.values[:0], p.row.Addr().Interface())
	if _, err := p.out.WriteRows([]parquet.Row{p.values}); err != nil {
		return err
	}
	if p.rows++; p.rows%p.limit == 0 {
		return p.Flush()
	}
	return nil
}

// Flush ends a row group.
func (p *parquetWriter) Flush() error { return p.out.Flush() }

func (p *parquetWriter) Close() error { return p.out.Close() }
