//go:build !noparquet

package table

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/swagwrap/swagwrap/weights"
)

// scalarOf returns the function that converts the values of a leaf, which are not null. It is nil for bytes that are no numbers.
func scalarOf(leaf *parquet.Column, half bool, written arrowField) func(parquet.Value) any {
	kind := leaf.Type().Kind()
	switch of := logicalOf(leaf).(type) {
	case *format.DecimalType:
		return decimal(kind, int(of.Scale))
	case *format.IntType:
		if !of.IsSigned {
			return unsigned
		}
	}
	switch {
	case half:
		return float16
	case timeOf(leaf, written) != "":
		return moment(leaf)
	case kind == parquet.FixedLenByteArray, kind == parquet.ByteArray:
		return nil
	}
	return number
}

func logicalOf(leaf *parquet.Column) format.LogicalTypeValue {
	if l := leaf.Type().LogicalType(); l != nil {
		return l.Value
	}
	return nil
}

func text(v parquet.Value) any { return string(v.ByteArray()) }

func float16(v parquet.Value) any {
	if b := v.ByteArray(); len(b) == 2 {
		return weights.Float16FromBits(binary.LittleEndian.Uint16(b))
	}
	return text(v)
}

func unsigned(v parquet.Value) any {
	if v.Kind() == parquet.Int32 {
		return int64(v.Uint32())
	}
	return v.Uint64()
}

func number(v parquet.Value) any {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean()
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Int64:
		return v.Int64()
	case parquet.Float:
		return v.Float()
	case parquet.Double:
		return v.Double()
	}
	return text(v)
}

// decimal converts unscaled whole numbers. The result is text, so that it is rounded once. Bytes are in two's complement, the
// highest first; 32 of them have the 76 digits of the widest type of Arrow.
func decimal(kind parquet.Kind, scale int) func(parquet.Value) any {
	const mostDigits, mostBytes = 76, 32
	if scale < 0 || scale > mostDigits {
		return nil
	}
	return func(v parquet.Value) any {
		whole := new(big.Int)
		switch b := v.ByteArray(); {
		case kind == parquet.Int32:
			whole.SetInt64(int64(v.Int32()))
		case kind == parquet.Int64:
			whole.SetInt64(v.Int64())
		case len(b) > mostBytes:
			return text(v)
		default:
			if whole.SetBytes(b); len(b) > 0 && b[0] >= 1<<7 {
				whole.Sub(whole, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		return json.Number(point(whole, scale))
	}
}

// point returns a whole number divided by 10^scale, without zeros at the end.
func point(whole *big.Int, scale int) string {
	digits := new(big.Int).Abs(whole).String()
	digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
	out, fraction := digits[:len(digits)-scale], strings.TrimRight(digits[len(digits)-scale:], "0")
	if fraction != "" {
		out += "." + fraction
	}
	if whole.Sign() < 0 {
		out = "-" + out
	}
	return out
}

// timeOf says which kind of time a leaf holds, and is "" for other values. A duration of Arrow is a bare integer in Parquet.
func timeOf(leaf *parquet.Column, written arrowField) string {
	switch logicalOf(leaf).(type) {
	case *format.DateType:
		return dates
	case *format.TimeType:
		return clocks
	case *format.TimestampType:
		return timestamps
	}
	switch {
	case leaf.Type().Kind() == parquet.Int96:
		return timestamps
	case written.duration:
		return durations
	}
	return ""
}

func unitOf(u format.TimeUnit) time.Duration {
	if u.Value == nil {
		return time.Nanosecond
	}
	return u.Value.Duration()
}

// moment returns the function that writes times as text. They are unlike numbers, whatever their unit.
func moment(leaf *parquet.Column) func(parquet.Value) any {
	const stamp = "2006-01-02T15:04:05.999999999"
	at := func(count int64, unit time.Duration) time.Time {
		each := int64(time.Second / unit)
		return time.Unix(count/each, count%each*int64(unit)).UTC()
	}
	switch of := logicalOf(leaf).(type) {
	case *format.DateType:
		return func(v parquet.Value) any { return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly) }
	case *format.TimeType:
		return func(v parquet.Value) any {
			return at(number(v).(int64), unitOf(of.Unit)).Format(stamp[len("2006-01-02T"):])
		}
	case *format.TimestampType:
		return func(v parquet.Value) any { return at(v.Int64(), unitOf(of.Unit)).Format(stamp) }
	}
	if leaf.Type().Kind() == parquet.Int96 {
		return func(v parquet.Value) any {
			const julian = 2440588 // the day of 1970-01-01
			i := v.Int96()
			nanoseconds := int64(uint64(i[0]) | uint64(i[1])<<32)
			return time.Unix((int64(i[2])-julian)*24*60*60, nanoseconds).UTC().Format(stamp)
		}
	}
	return func(v parquet.Value) any { return fmt.Sprintf("%d units of time", v.Int64()) }
}
