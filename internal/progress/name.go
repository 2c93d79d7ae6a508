package progress

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The kinds of progress, the coarsest first.
const (
	epoch = iota
	step
)

var kinds = []string{epoch: "epoch", step: "step"}

// progressWords has the words before a number of progress.
var progressWords = map[string]int{
	"epoch":      epoch,
	"epochs":     epoch,
	"ep":         epoch,
	"e":          epoch,
	"step":       step,
	"steps":      step,
	"iter":       step,
	"iters":      step,
	"iteration":  step,
	"iterations": step,
	"it":         step,
	"update":     step,
	"updates":    step,
}

// metricWords has the words before the value of a metric.
var metricWords = set("loss acc accuracy nll ce auc auroc auprc f iou miou map psnr ssim val valid test score top err error ppl " +
	"perplexity bleu rmse mae mse r " +
	"dice metric wer cer fid lr precision recall kappa qwk mcc bpc elbo reward")

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// A name is what the path of a checkpoint tells.
type name struct {
	path     string
	progress [2]float64 // by kind; NaN where there is none
	global   bool       // the step counts from the beginning of training
	rest     string     // the path without progress, metrics, decimals and extension, and with plain digits for numbers such as 1e4
	metric   bool       // it has a number behind a metric's word
	power    bool       // it has a number such as 1e4 that no word explains
}

func (n name) has(kind int) bool { return n.progress[kind] == n.progress[kind] }

// numbers matches a word, and a number behind it: 12, 0.83, 1e4, 1.5e+3 or 10k.
var numbers = regexp.MustCompile(`([A-Za-z]*)([ =\-.:(\[#]{0,3}?)-?(\d+(?:\.\d+)?)([eE]\+?\d{1,2}\b|[kKM]\b)?`)

func parse(path string) name {
	n := name{path: path, progress: [2]float64{math.NaN(), math.NaN()}}
	var rest strings.Builder
	end := 0
	ordinal := false                           // the last number belongs to a metric's name, as in f1 and top5
	text := strings.ReplaceAll(path, "_", "-") // an underscore separates words, but not for \b
	for _, m := range numbers.FindAllStringSubmatchIndex(text, -1) {
		word, digits, suffix := strings.ToLower(text[m[2]:m[3]]), text[m[6]:m[7]], ""
		rest.WriteString(path[end:m[6]])
		end = m[7]
		if m[8] >= 0 {
			suffix, end = text[m[8]:m[9]], m[9]
		}
		kind, isProgress := progressOf(word)
		if word == "e" && m[2] > 0 && text[m[2]-1] >= '0' && text[m[2]-1] <= '9' {
			isProgress = false // of a number such as 1e-4
		}
		isMetric := metricOf(word) || word == "" && ordinal
		ordinal = isMetric && len(digits) == 1 && m[4] == m[5]
		value := valueOf(digits, suffix)
		switch {
		case isProgress && !math.IsInf(value, 0):
			n.progress[kind] = value
			n.global = n.global || kind == step && strings.HasSuffix(strings.ToLower(text[:m[2]])+word, "global-"+word) ||
				strings.HasPrefix(word, "global")
		case isMetric:
			n.metric = true
		case strings.Contains(digits, ".") && suffix == "":
		case strings.ContainsAny(suffix, "eE") && value < math.MaxInt64:
			n.power = true
			rest.WriteString(strconv.FormatInt(int64(value), 10))
		default:
			rest.WriteString(path[m[6]:end])
		}
	}
	rest.WriteString(path[end:])
	n.rest = rest.String()
	if ext := filepath.Ext(n.rest); !strings.ContainsAny(ext, "0123456789") {
		n.rest = strings.TrimSuffix(n.rest, ext) // epoch=5.ckpt comes before epoch=5-v1.ckpt
	}
	return n
}

// progressOf returns the kind of progress that a word counts. A longer word may end in one of the longer words: globalstep.
func progressOf(word string) (kind int, ok bool) {
	if kind, ok = progressWords[word]; ok {
		return kind, true
	}
	for w, kind := range progressWords {
		if len(w) >= len("step") && strings.HasSuffix(word, w) {
			return kind, true
		}
	}
	return 0, false
}

// metricOf reports whether a word names a metric, or ends in the name of one: valloss.
func metricOf(word string) bool {
	if metricWords[word] {
		return true
	}
	for w := range metricWords {
		if len(w) >= len("acc") && strings.HasSuffix(word, w) {
			return true
		}
	}
	return false
}

// valueOf returns a number with an exponent such as e4 behind it, or with k or M.
func valueOf(digits, suffix string) float64 {
	suffix = strings.NewReplacer("k", "e3", "K", "e3", "M", "e6").Replace(suffix)
	v, err := strconv.ParseFloat(digits+suffix, 64)
	if err != nil {
		return math.Inf(1)
	}
	return v
}
