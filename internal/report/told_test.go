package report

import (
	"bytes"
	"errors"
	"image"
	"math"
	"strings"
	"testing"
)

// told are examples of which no class is predicted: the third is wrong, the fourth cannot be
// placed.
func told() *Selection {
	s := NewSelection(3)
	s.Words = [4][2]string{{"Sure", "a"}, {"Unsure", "b"}, {"Apart", "c"}, {"Off", "d"}}
	for i, t := range []Told{
		{Lines: []Line{{"20.3 ± 0.5", "true 20.1", -1}}, Verdict: "inside <the> interval", Uncertain: "aleatoric 0.4", Disagree: "epistemic 0.3", Uncertainty: 0.5, Disagreement: 0.3},
		{Lines: []Line{{"cat", "70.0 %", 0.7}, {"no label", "", -1}}, Uncertain: "entropy 1", Disagree: "MI 0", Uncertainty: 2},
		{Lines: []Line{{"1.0 ± 0.1", "true 7.0", -1}}, Verdict: "60.0 standard deviations off", Wrong: true, Uncertain: "aleatoric 0.1", Disagree: "epistemic 0", Uncertainty: 0.1, Error: 60},
		{Uncertainty: math.NaN()},
	} {
		s.Add(Example{Index: i, Label: -1, Told: &t})
	}
	return s
}

func TestTold(t *testing.T) {
	sections := told().Sections()
	var got []string
	for _, s := range sections {
		text := s.Heading + ":"
		for _, e := range s.Examples {
			text += string(rune('0' + e.Index))
		}
		got = append(got, text)
	}
	if want := "Sure:20 Unsure:1 Apart:0 Off:2"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %s", got, want)
	}
	m := &Montage{Title: "t", Legend: "what <this> is", Sections: sections, Name: func(int) string { return "x.npy[7]" },
		Image: func(int) (image.Image, error) { return nil, errors.New("gone") }}
	var page, drawing bytes.Buffer
	if err := errors.Join(m.WriteHTML(&page), m.WritePNG(&drawing)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"what &lt;this&gt; is", "<bdi>20.3 ± 0.5</bdi><span>true 20.1</span></span></li>", `<bdi>cat</bdi><span>70.0 %</span></span><span class="track"><span style="width:70.0%">`,
		`<div class="verdict right">inside &lt;the&gt; interval</div>`, `<div class="verdict wrong">60.0 standard`, "<span>aleatoric 0.4</span><span>epistemic 0.3</span>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page.String(), "mutual information") || !strings.HasPrefix(drawing.String(), "\x89PNG") {
		t.Error("classes are spoken of, or nothing was drawn")
	}
	if s := m.caption(&sections[0].Examples[1]).String(); s != "x.npy[7]: 20.3 ± 0.5 true 20.1, inside <the> interval" {
		t.Error(s)
	}
}
