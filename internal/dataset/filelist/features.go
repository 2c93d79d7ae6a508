package filelist

import "encoding/json"

// featuresOf returns the JSON object with the columns, from what Hugging Face's datasets keeps in a file.
func featuresOf(text string) []byte {
	var kept struct {
		Info struct {
			Features json.RawMessage `json:"features"`
		} `json:"info"`
	}
	if json.Unmarshal([]byte(text), &kept) != nil {
		return nil
	}
	return kept.Info.Features
}
