package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/file"
)

// A Document is a document of a text, or a part of a text without documents. Its Heading stands before its Body. An array
// of token numbers has IDs instead.
type Document struct {
	Heading, Body string
	IDs           []int32
}

// textOf returns the text that Open returned, or nil for other data.
func textOf(d Dataset) *texts {
	switch v := d.(type) {
	case *rowed:
		return v.texts
	case *texts:
		return v
	}
	return nil
}

// Documents returns the documents of a text. A text without documents is divided into up to 64 parts. Documents returns nil
// for other data.
func Documents(d Dataset) (list []Document, err error) {
	t := textOf(d)
	if t == nil {
		return nil, nil
	}
	if t.encode == nil {
		each := max(1, (len(t.IDs)+blocks-1)/blocks)
		for from, to := 0, 0; from < len(t.IDs); from = to {
			for to++; to < len(t.IDs) && (t.Document == nil && to < from+each || t.Document != nil && t.Document[to] == t.Document[from]); {
				to++
			}
			list = append(list, Document{IDs: t.IDs[from:to]})
		}
		return list, nil
	}
	from := t.sources[0]
	content, err := file.Read(from.Path, text.MaxTokens)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != from.SHA256 {
		return nil, fmt.Errorf("%s: it has changed since this command opened it", from.Path)
	}
	for _, part := range text.Parts(string(content), blocks) {
		heading, body := text.CutHeading(part)
		list = append(list, Document{Heading: heading, Body: body})
	}
	return list, nil
}

// Rewritten returns the text d with other documents in its place, cut into windows in the same way. units numbers the
// documents: tokens of documents with one number are one unit of chance. how is as for [Changed].
func Rewritten(d Dataset, with []Document, units []int, how ...any) (Dataset, error) {
	all := textOf(d)
	t, own := *all, *all.examples
	t.examples, t.spans, t.decoded, own.fields = &own, nil, nil, slices.Clone(own.fields)
	var content []byte
	var ids []int32
	var ends []int // where documents end, in bytes or tokens
	for _, p := range with {
		content, ids = append(append(content, p.Heading...), p.Body...), append(ids, p.IDs...)
		ends = append(ends, len(content)+len(ids))
	}
	t.Tokens = &text.Tokens{IDs: ids}
	if t.encode != nil {
		var err error
		if t.Tokens, err = t.encode(content); err != nil {
			return nil, err
		}
	}
	t.Documents, t.Document = nil, make([]int32, len(t.IDs))
	at, k := 0, 0
	for i := range t.IDs {
		for k+1 < len(ends) && at >= ends[k] {
			k++
		}
		t.Document[i] = int32(units[k])
		if at++; t.encode != nil {
			at += int(t.Bytes[i]) - 1
		}
	}
	err := t.cut()
	if err == nil {
		err = t.inRange(t.opts)
	}
	if err != nil {
		return nil, err
	}
	own.id = IDOf(all.id, how...)
	return t.prepared(), nil
}
