package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrNumbers is the error of tokens whose numbers are not of use: every score of the network belongs to one token.
var ErrNumbers = errors.New("want a number of its own for each token, from 0")

// maxTokens bounds the numbers of tokens, and the lists of a tokenizer.json. Gemma has 262,144 tokens, and GPT-4o has
// 446,189 merges.
const maxTokens = 1 << 21

// vocabulary is the number of each token of a model.
type vocabulary map[string]int32

// UnmarshalJSON implements [json.Unmarshaler]. It refuses what a map would hide: a token that occurs twice. A list is
// skipped, because models that are not supported have one.
func (v *vocabulary) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte("{")) {
		return nil
	}
	if *v != nil {
		return errors.New("two vocabularies")
	}
	*v = vocabulary{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	d.Token() // the brace; b is valid JSON
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		token := key.(string)
		value, err := d.Token()
		if err != nil {
			return err
		}
		number, ok := value.(json.Number)
		if !ok {
			return fmt.Errorf("token %q has no number: %w", token, ErrNumbers)
		}
		if _, twice := (*v)[token]; twice {
			return fmt.Errorf("token %q occurs twice", token)
		}
		n, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil {
			return fmt.Errorf("token %q has the number %s: %w", token, number, ErrNumbers)
		}
		if err := checkNumber(token, n); err != nil {
			return err
		}
		(*v)[token] = int32(n)
	}
	return nil
}

func checkNumber(token string, n int64) error {
	if n < 0 || n >= maxTokens {
		return fmt.Errorf("token %q has the number %d, want 0 to %d: %w", token, n, maxTokens-1, ErrNumbers)
	}
	return nil
}

// taken returns which numbers have a token. It fails if two tokens have the same. Numbers without a token are allowed, as
// cl100k_base has some.
func (v vocabulary) taken() ([]bool, error) {
	size := int32(0)
	for _, n := range v {
		size = max(size, n+1)
	}
	taken, twice := make([]bool, size), int32(-1)
	for _, n := range v {
		if taken[n] && (twice < 0 || n < twice) {
			twice = n
		}
		taken[n] = true
	}
	if twice < 0 {
		return taken, nil
	}
	var both []string
	for token, n := range v {
		if n == twice {
			both = append(both, token)
		}
	}
	slices.Sort(both)
	return nil, fmt.Errorf("tokens %q and %q have the same number %d: %w", both[0], both[1], twice, ErrNumbers)
}

// merges are the pairs of symbols that byte-pair encoding joins, in their order.
type merges [][2]string

// UnmarshalJSON implements [json.Unmarshaler]. A merge is "a b", or ["a", "b"].
func (m *merges) UnmarshalJSON(b []byte) error {
	return eachElement(b, func(raw json.RawMessage) (err error) {
		var pair []string
		if raw[0] == '"' {
			var both string
			err = json.Unmarshal(raw, &both)
			pair = strings.Split(both, " ")
		} else {
			err = json.Unmarshal(raw, &pair)
		}
		if err == nil && len(pair) != 2 {
			err = fmt.Errorf("%q, want two symbols", pair)
		}
		if err != nil {
			return fmt.Errorf("merge %d: %w", len(*m), err)
		}
		*m = append(*m, [2]string(pair))
		return nil
	})
}

// eachElement calls read for each element of a JSON list, one after the other. The element is valid until read returns.
func eachElement(b []byte, read func(raw json.RawMessage) error) error {
	switch {
	case string(b) == "null":
		return nil
	case b[0] != '[':
		return errors.New("want a list")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.Token() // the bracket; b is valid JSON
	var raw json.RawMessage
	for k := 0; d.More(); k++ {
		if k == maxTokens {
			return fmt.Errorf("a list of more than %d elements", maxTokens)
		}
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := read(raw); err != nil {
			return err
		}
	}
	return nil
}
