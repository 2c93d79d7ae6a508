package picture

import "encoding/binary"

// Types of TIFF 6.0 whose values are whole numbers or bytes.
const (
	octet       = 1
	short       = 3
	long        = 4
	signedOctet = 6
	undefined   = 7
	signedShort = 8
	signedLong  = 9
)

// tagSizes are the bytes of a value of each type.
var tagSizes = map[uint16]int{octet: 1, short: 2, long: 4, signedOctet: 1, undefined: 1, signedShort: 2, signedLong: 4}

// A tagValue is what a directory says about a tag.
type tagValue struct {
	kind  uint16
	count int64
	first int // the first value
	at    int // where the values begin
}

// bytes returns the values of a tag of bytes.
func (v tagValue) bytes(data []byte) []byte {
	if v.kind != octet && v.kind != undefined {
		return nil
	}
	return data[v.at:][:v.count]
}

// readTags returns the tags of the first directory of a TIFF file or an Exif block that have whole numbers or
// bytes. It returns those that it can read.
func readTags(data []byte) map[uint16]tagValue {
	if len(data) < 8 {
		return nil
	}
	var order binary.ByteOrder
	switch string(data[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return nil
	}
	start := int64(order.Uint32(data[4:]))
	if start > int64(len(data))-2 {
		return nil
	}
	const entry = 12 // bytes
	tags, rest := map[uint16]tagValue{}, data[start+2:]
	for n := order.Uint16(data[start:]); n > 0 && len(rest) >= entry; n-- {
		tag, v := order.Uint16(rest), tagValue{
			kind:  order.Uint16(rest[2:]),
			count: int64(order.Uint32(rest[4:])),
			at:    len(data) - len(rest) + 8,
		}
		rest = rest[entry:]
		size := tagSizes[v.kind]
		if _, seen := tags[tag]; seen || size == 0 || v.count == 0 {
			continue
		}
		if bytes := v.count * int64(size); bytes > 4 {
			at := int64(order.Uint32(data[v.at:]))
			if at > int64(len(data))-bytes {
				continue
			}
			v.at = int(at)
		}
		switch b := data[v.at:]; v.kind {
		case octet, undefined:
			v.first = int(b[0])
		case signedOctet:
			v.first = int(int8(b[0]))
		case short:
			v.first = int(order.Uint16(b))
		case signedShort:
			v.first = int(int16(order.Uint16(b)))
		case long:
			v.first = int(order.Uint32(b))
		case signedLong:
			v.first = int(int32(order.Uint32(b)))
		}
		tags[tag] = v
	}
	return tags
}
