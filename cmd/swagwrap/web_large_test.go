//go:build large

package main

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/webpage"
)

// driveWeb stands next to a page of export --web. It gives the page files, as a user does, and sends what the page then shows.
const driveWeb = `<!doctype html><meta charset="utf-8"><body><iframe style="width:1280px;height:900px"></iframe><script type="module">
const given = FILES, frame = document.querySelector("iframe"), bad = [];
const post = (path, body) => fetch(path, { method: "POST", body });
try {
  frame.src = "index.html";
  await new Guarantee((done) => (frame.onload = done));
  const page = frame.contentDocument, inside = frame.contentWindow;
  inside.addEventListener("securitypolicyviolation", (e) => bad.push(e.violatedDirective + " " + e.blockedURI));
  const until = async (ready) => { while (!ready()) await new Guarantee((done) => setTimeout(done, 50)); };
  const network = (await (await fetch("page.json")).json()).network, digests = Boolean(network.picture);
  if (digests) { // what the network takes, to the bit
    await import("/wasm_exec.js");
    const go = new Go();
    go.run((await WebAssembly.instantiate(await (await fetch("inputs.wasm")).arrayBuffer(), go.importObject)).instance);
    networkInputs.open(JSON.stringify(network));
  }
  await until(() => page.body.dataset.state === "ready" || !page.getElementById("failure").hidden);
  let saved;
  inside.URL.createObjectURL = (blob) => ((saved = blob), "");
  const results = {}, all = page.getElementById("results").children;
  for (const name of given) {
    const bytes = await (await fetch("given/" + encodeURIComponent(name))).arrayBuffer(), chosen = new DataTransfer(), before = all.length;
    chosen.items.add(new File([bytes], name));
    const input = page.getElementById("file");
    input.files = chosen.files;
    input.dispatchEvent(new Event("change"));
    await until(() => all.length > before && page.getElementById("busy").textContent === "");
    const card = all[0], shown = (results[name] = { error: card.querySelector(".error")?.textContent ?? "", text: card.innerText, values: {} });
    for (const d of card.querySelectorAll("details")) d.open = true;
    await new Guarantee((done) => setTimeout(done, 20));
    for (const e of card.querySelectorAll("[data-of]")) shown.values[e.dataset.of] = e.title;
    const taken = digests && networkInputs.picture(new Uint8Array(bytes)).tensors;
    if (taken) shown.digest = [...new Uint8Array(await crypto.subtle.digest("SHA-256", taken[0].data))].map((b) => b.toString(16).padStart(2, "0")).join("");
    const button = card.querySelector("button");
    if (button) {
      button.click();
      shown.csv = await saved.text();
    }
  }
  await post("done", JSON.stringify({ failure: page.getElementById("failure").hidden ? "" : page.getElementById("failure").textContent, results, bad }));
} catch (e) {
  await post("done", JSON.stringify({ failure: String(e) }));
}
</script>`

// A seenResult is what a page shows of a file.
type seenResult struct {
	Error, Text, CSV, Digest string
	Values                   map[string]string // by the columns of score
}

// inWeb serves the page in a folder, gives it files, and returns what it shows of each.
func inWeb(t *testing.T, folder string, files []string) map[string]seenResult {
	t.Helper()
	given, names := map[string]string{}, []string(nil)
	for _, path := range files {
		given[filepath.Base(path)], names = path, append(names, filepath.Base(path))
	}
	list, _ := json.Marshal(names)
	done := make(chan []byte, 1)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(folder)))
	mux.HandleFunc("/drive.html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, strings.Replace(driveWeb, "FILES", string(list), 1))
	})
	mux.HandleFunc("/given/{name}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, given[r.PathValue("name")]) })
	mux.HandleFunc("POST /done", func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		done <- body
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	profile := t.TempDir()
	cmd := exec.Command(chromium(t), "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+profile,
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0", server.URL+"/drive.html") // with the port it stays
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var printed struct {
		Failure string
		Results map[string]seenResult
		Bad     []string
	}
	select {
	case body := <-done:
		if err := json.Unmarshal(body, &printed); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill()
		<-ended
	case err := <-ended:
		t.Fatalf("%s ended: %v", cmd.Path, err)
	}
	if printed.Failure != "" || len(printed.Bad) > 0 || len(printed.Results) != len(given) {
		t.Fatalf("%s: %q, against the policy %q, %d of %d results", folder, printed.Failure, printed.Bad, len(printed.Results), len(given))
	}
	return printed.Results
}

// webRows reads a CSV file by the base name of its paths.
func webRows(t *testing.T, text string) (rows map[string]map[string]string) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	rows = map[string]map[string]string{}
	for _, record := range all[1:] {
		row := map[string]string{}
		for k, name := range all[0] {
			row[name] = record[k]
		}
		rows[filepath.Base(row["path"])] = row
	}
	return rows
}

// webColumns are the columns of score that a page shows, if score has them.
var webColumns = regexp.MustCompile(`^((p|probability|mean|std|aleatoric_std|epistemic_std|lower|upper)(_\d+)?|predictive_entropy|mutual_information)$`)

// A webCase is an ensemble whose page is tried.
type webCase struct {
	name      string
	fit       []string
	sample    []string
	guarantee []string // for calibrate
	known     string   // labelled data for calibrate
	files     []string
	tolerate  float64 // largest difference of a number; no less than 1e-6 of an entropy
}

// A page shows the rows of score: pictures of every format, resized and cropped, and tables, for all tasks, with sets, intervals and
// abstention. The network takes the same bits. No probability or entropy differs by 1e-6, as in exported models. The
// ResNet has pictures unlike those of training, and large scores: the kernels in WebAssembly add up in another order. Means are in
// units of 20. What the page refuses, score refuses with the same words.
func TestWeb(t *testing.T) {
	fixtures, data := absolute(t, "..", "..", "fixtures"), absolute(t, "testdata")
	few := fewImages(t, filepath.Join(fixtures, "mnist"), 100)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if code, printed := runs(t, "setup", "--provider", "web"); code != 0 {
		t.Fatal(printed)
	}
	pictures, err := filepath.Glob(filepath.Join(fixtures, "images", "files", "*.*"))
	if err != nil || len(pictures) < 100 {
		t.Fatal(len(pictures), err)
	}
	pictures = slices.DeleteFunc(pictures, func(path string) bool { return strings.HasSuffix(path, ".mpo") }) // score knows no such extension
	file := func(name, content string) string {
		t.Helper()
		if err := os.WriteFile(at(name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	named := func(n string) string { return filepath.Join(fixtures, "images", "files", n) }
	deep := readFile(t, named("basn2c16.png"))
	damaged := []string{file("wrong.png", "no picture"), file("empty.png", ""), file("half.jpg", readFile(t, named("china.jpg"))[:20000]),
		file("flipped.png", deep[:len(deep)/2]+"\x00\xff"+deep[len(deep)/2+2:])}
	some := append([]string{named("hopper_orientation_6.jpg"), named("basn2c16.png"), named("basn0g16.png"), named("pil_sample_cmyk.jpg")}, damaged...)

	// The columns of the network stand in another order, between others.
	rows := func(labels string, cell func(i int) string) string {
		text := "name,bp,age,site,bmi" + labels + "\n"
		for i := range 600 {
			text += fmt.Sprintf("n%d,%g,%g,%d,%g%s\n", i, math.Sin(float64(i)), math.Cos(float64(3*i)), i%2, float64(i%17)/7, cell(i))
		}
		return text
	}
	// As what the networks predict, with noise.
	class := func(i int) int { return (i%17/9 + i%3/2) % 2 }
	table := file("table.csv", rows("", func(int) string { return "" }))
	known := map[string]string{
		"class":  file("class.csv", rows(",label", func(i int) string { return fmt.Sprintf(",%d", class(i)) })),
		"labels": file("labels.csv", rows(",label_0,label_1", func(i int) string { return fmt.Sprintf(",%d,%d", class(i), i%5/3) })),
		"target": file("target.csv", rows(",target", func(i int) string { return fmt.Sprintf(",%g", 20+3*math.Sin(float64(i))) })),
		"both":   file("both.csv", rows(",target_0,target_1", func(i int) string { return fmt.Sprintf(",%g,%d", 20+3*math.Sin(float64(i)), i%7) })),
	}
	tables := []string{table,
		file("commas.csv", "bmi;age;bp;who\n1,5;2;-3,25;Ann\n0;1e2;0,5;Bob\n"), file("tabs.tsv", "bmi\tage\tbp\n1.5\t2\t-3.25\n"),
		file("lines.jsonl", `{"bp": 1, "age": 2, "bmi": 0.5, "who": "Ann"}`+"\n"+`{"age": 3, "who": "Bob", "bp": -1, "bmi": 1e-3}`+"\n"),
		file("lacks.csv", "age,bmi\n1,2\n"), file("text.csv", "age,bmi,bp\n1,two,3\n"), file("gap.csv", "age,bmi,bp\n1,,3\n"),
		file("ragged.csv", "age,bmi,bp\n1,2\n"), file("header.csv", "1,2,3\n4,5,6\n"), file("nothing.csv", ""), file("infinite.csv", "age,bmi,bp\n1,1e300,2\n"),
		file("twice.csv", "age,bmi,bp,age\n1,2,3,4\n"),
	}
	names := file("names.txt", strings.Join(longNames(10), "\n")+"\n")
	pair := func(dir, name string) []string {
		return []string{filepath.Join(dir, name+"-1.onnx"), filepath.Join(dir, name+"-2.onnx")}
	}
	fit := func(task string, networks []string, flags ...string) []string {
		return slices.Concat([]string{"--task", task}, flags, networks)
	}
	suffixes := absolute(t, "..", "..", "internal", "infer", "probe", "testdata")
	const columns, tiny = "--columns=age,bmi,bp", "--preprocess=resize-size=4 input-size=4 mean=0.5 std=0.25"
	coverage, keep := []string{"--coverage", "80%"}, []string{"--bn", "keep"}
	for _, tt := range []webCase{
		{"grey", append(fit("classes", nil, "--preprocess", "resize-size=32 input-size=28 interpolation=bicubic mean=0.1307 std=0.3081", "--augment", "none", "--class-names", names,
			"--template", filepath.Join(few, "model.onnx")), glob(t, few, "states", "epoch-2*.pt")...),
			[]string{"--bn-data", filepath.Join(few, "train.npz")}, coverage, filepath.Join(few, "val.npz"), slices.Concat(pictures, damaged), 1e-6},
		{"colour", fit("classes", []string{filepath.Join(fixtures, "exporters", "torchvision-resnet18", "ckpt-1.onnx"), filepath.Join(fixtures, "exporters", "torchvision-resnet18", "ckpt-2.onnx")},
			"--preprocess", "imagenet input-size=16"), keep, nil, "", pictures, 4e-6},
		{"binary-pictures", fit("binary", pair(data, "binary"), tiny), keep, nil, "", some, 1e-6},
		{"labels-pictures", fit("labels", pair(data, "labels"), tiny, "--output-name", "each"), keep, nil, "", some, 1e-6},
		{"numbers-pictures", fit("regression", pair(data, "four-classes"), tiny, "--targets", "head=log-variance mean=20,5 std=3,1"), keep, nil, "", some, 1e-5},
		{"table", fit("classes", pair(data, "table"), columns), nil, coverage, known["class"], tables, 1e-6},
		{"answers", fit("classes", pair(data, "table"), columns), nil, []string{"--threshold", "risk=0.7"}, known["class"], tables[:1], 1e-6},
		{"binary", fit("binary", pair(suffixes, "binary"), "--columns=bp,age,bmi,site,more,most", "--output-name", "logit"), nil, []string{"--threshold", "f1"}, "", nil, 1e-6},
		{"labels", fit("labels", pair(data, "table"), columns), nil, coverage, known["labels"], tables[:1], 1e-6},
		{"regression", fit("regression", pair(data, "table"), columns, "--targets", "head=log-variance mean=20 std=3"), nil, coverage, known["target"], tables[:1], 1e-5},
		{"numbers", fit("regression", pair(data, "table"), columns, "--targets", "head=none mean=20,5 std=3,1"), nil, coverage, known["both"], tables[:1], 1e-5},
	} {
		if tt.name == "binary" { // six columns
			text := "bp,age,bmi,site,more,most,label\n"
			for i := range 400 {
				x := func(k float64) float64 { return math.Sin(float64(7*i) + k) }
				label := 0
				if (3*x(0) > 2*x(3)) != (i%9 == 0) {
					label = 1
				}
				text += fmt.Sprintf("%g,%g,%g,%g,%g,%g,%d\n", x(0), x(3), x(6), x(9), x(12), x(15), label)
			}
			tt.known = file("six.csv", text)
			tt.files = []string{tt.known}
		}
		t.Run(tt.name, func(t *testing.T) { tt.try(t, dir) })
	}
}

// runs runs the program.
func runs(t *testing.T, args ...string) (code int, printed string) {
	t.Helper()
	var out strings.Builder
	code = run(t.Context(), append([]string{"swagwrap"}, args...), &out, &out)
	return code, out.String()
}

// try makes the page, gives it the files, and compares what it shows with the rows of score.
func (tt webCase) try(t *testing.T, dir string) {
	at := func(name string) string { return filepath.Join(dir, tt.name+name) }
	does := func(args ...string) {
		t.Helper()
		if code, printed := runs(t, args...); code != 0 {
			t.Fatalf("%q …: %d\n%s", args[:min(9, len(args))], code, printed)
		}
	}
	e := at(".safetensors")
	does(append([]string{"fit", "-q", "-o", at(".p.safetensors")}, tt.fit...)...)
	does(slices.Concat([]string{"sample", "-q", "-n", "5", "-o", e}, tt.sample, []string{at(".p.safetensors")})...)
	if tt.guarantee != nil {
		does("score", "-q", "-o", at(".known.npz"), e, tt.known)
		does(slices.Concat([]string{"calibrate", "-q", "-o", at(".promise.safetensors"), "--ensemble", e}, tt.guarantee, []string{at(".known.npz")})...)
		e = at(".promise.safetensors")
	}
	does("export", "-q", "--web", at(""), e)
	shown := inWeb(t, at(""), tt.files)
	var page webpage.Page
	if err := json.Unmarshal([]byte(readFile(t, at(""), "page.json")), &page); err != nil {
		t.Fatal(err)
	}
	c := &webComparison{T: t, worst: map[bool]float64{}}
	refused := 0
	score := []string{"score", "-q", "--probs", "--on-error", "skip", "-o", at(".rows.csv"), "--force", e}
	if page.Network.Picture != nil {
		if code, printed := runs(t, append(score, tt.files...)...); code != 0 && code != 3 {
			t.Fatal(printed)
		}
		want := webRows(t, readFile(t, at(".rows.csv")))
		for _, path := range tt.files {
			name := filepath.Base(path)
			row, see := want[name], shown[name]
			if row["error"] != "" || see.Error != "" {
				refused++
				if see.Error == "" || !strings.Contains(row["error"], strings.TrimPrefix(see.Error, name+": ")) {
					t.Errorf("%s says %q, want %q", name, see.Error, row["error"])
				}
				continue
			}
			taken, _, err := page.Network.Read([]byte(readFile(t, path)))
			if err != nil || fmt.Sprintf("%x", sha256.Sum256(taken.Data)) != see.Digest {
				t.Errorf("the network takes other bits of %s than in the browser, %v", name, err)
			}
			c.row(name, row, see.Values)
			if n := row["set_size"]; n != "" && !strings.Contains(see.Text, fmt.Sprintf("(%s of %d)", n, len(page.Names))) {
				t.Errorf("the set of %s has %s classes, and the page shows\n%s", name, n, see.Text)
			}
		}
	} else {
		for _, path := range tt.files {
			name := filepath.Base(path)
			see := shown[name]
			code, printed := runs(t, append(score, path)...)
			if code != 0 || see.Error != "" {
				refused++
				if see.Error == "" || !strings.Contains(printed, strings.TrimPrefix(see.Error, name+": ")) {
					t.Errorf("%s says %q, want %d, %s", name, see.Error, code, printed)
				}
				continue
			}
			got, want := webRows(t, see.CSV), webRows(t, readFile(t, at(".rows.csv")))
			for row := range want {
				c.row(row, want[row], got[row])
			}
		}
	}
	t.Logf("%d numbers of %d rows, at most %.2g apart, entropies %.2g; %d of %d files refused", c.compared, c.rows, c.worst[false], c.worst[true], refused, len(tt.files))
	if c.worst[false] > tt.tolerate || c.worst[true] > max(1e-6, tt.tolerate) || c.rows < 4 {
		t.Errorf("%d rows, %v apart, want %g at most", c.rows, c.worst, tt.tolerate)
	}
}

// A webComparison compares rows of a page with those of score.
type webComparison struct {
	*testing.T
	rows, compared int
	worst          map[bool]float64 // difference of entropies, and of other numbers
}

// row compares a row of the page with that of score. The page has all columns that webColumns names, and no others than score.
func (c *webComparison) row(name string, want, got map[string]string) {
	c.Helper()
	c.rows++
	for column := range want {
		if _, ok := got[column]; webColumns.MatchString(column) && !ok {
			c.Errorf("%s: the page shows no %s", name, column)
		}
	}
	for column, text := range got {
		a, errGot := strconv.ParseFloat(text, 64)
		b, errWant := strconv.ParseFloat(want[column], 64)
		switch {
		case column == "path":
		case column == "prediction", column == "set_size", errWant != nil:
			if text != want[column] {
				c.Errorf("%s: %s is %q, want %q", name, column, text, want[column])
			}
		case errGot != nil || math.IsNaN(a-b):
			c.Errorf("%s: %s is %q, want %q", name, column, text, want[column])
		default:
			entropy := strings.Contains(column, "entropy") || column == "mutual_information"
			c.worst[entropy], c.compared = max(c.worst[entropy], math.Abs(a-b)), c.compared+1
		}
	}
}

// longNames returns long names of classes, one with markup.
func longNames(n int) (names []string) {
	for k := range n {
		names = append(names, fmt.Sprintf("<b>class number %d</b> of a collection whose names are far longer than any screen of a telephone is wide", k))
	}
	return names
}

func glob(t *testing.T, parts ...string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(parts...))
	if err != nil || len(found) == 0 {
		t.Fatal(parts, err)
	}
	return found
}
