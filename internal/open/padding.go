package open

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/swag"
)

// readPad gives the model card what fills up short lists of tokens: the pad token of the configuration near the checkpoints, and 0 for
// masks. A network without a mask reads padding as tokens, unless it looks for the pad token itself.
func readPad(s *FitInputs, card *swag.Card, g *infer.Graph) {
	token, from, ok := s.near.Pad()
	if !ok {
		return
	}
	pad, masked := map[string]float64{}, false
	var tokens []string
	for _, f := range g.Fields() {
		switch role := dataset.Given(f.Name); {
		case !f.Ints() || len(f.Shape) == 0 || role == "position":
		case role == "":
			pad[f.Name], tokens = float64(token), append(tokens, f.Name)
		default:
			pad[f.Name], masked = 0, masked || role == "mask"
		}
	}
	for _, input := range tokens {
		end, looks := g.EndTokens[input]
		given, told := card.Pad[input]
		if len(g.Inputs) == 1 && !told {
			given, told = card.Pad[""]
		}
		switch {
		case told && given != float64(token) && (!masked || looks):
			s.Warnf("%s fills up %q with %v, and pad_token_id is %d in %s: the network was trained with that", setting.Pad, input, given,
				token, from)
		case card.Pad != nil:
		case looks && end != token:
			s.Warnf("pad_token_id is %d in %s, and the graph looks for %d: it was exported with another one. %s says which is right", token,
				from, end, setting.Pad.With(fmt.Sprintf("%s=%d", input, end)))
			return
		case !masked && !looks:
			s.Logf("pad_token_id %d of %s is not used: the graph takes no mask, so it would read padding as tokens. Export it with "+
				"attention_mask. If training padded without a mask, %s fills up short lists", token, from,
				setting.Pad.With(fmt.Sprintf("%s=%d", input, token)))
			return
		}
	}
	if card.Pad == nil && len(pad) > 0 {
		card.Pad = pad
		s.Logf("short lists of tokens are filled up with pad_token_id %d of %s, and masks with 0", token, from)
	}
}

// checkPadding warns of tokens behind a mask that are not the pad token, if the network looks for that to find the last token.
func checkPadding(a *Opener, path string, d dataset.Dataset, g *infer.Graph) {
	const most = 256
	if len(g.EndTokens) == 0 {
		return
	}
	fields := dataset.Fields(d)
	size, err := dataset.SizeOf(d)
	if err != nil {
		return
	}
	for k, f := range fields {
		end, looks := g.EndTokens[f.Name]
		if !looks {
			continue
		}
		dst := size.Make(1)
		for i := range min(d.Len(), most) {
			if d.Read(dst, i) != nil {
				return // whoever reads it next reports the error
			}
			tokens := dst.Field(fields, k).Ints
			own := dataset.Own(d, dst, i, len(tokens))
			for at, token := range tokens {
				if own != nil && !own[at] && token != end {
					a.Warnf("%s: the mask leaves out token %d, and the network looks for %d to find the last token: it takes the "+
						"scores of another place. Fill up %q with %[3]d", path, token, end, f.Name)
					return
				}
			}
		}
	}
}
