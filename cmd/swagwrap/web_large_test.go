//go:build large

package main

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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
  await new Promise((done) => (frame.onload = done));
  const page = frame.contentDocument, inside = frame.contentWindow;
  inside.addEventListener("securitypolicyviolation", (e) => bad.push(e.violatedDirective + " " + e.blockedURI));
  const until = async (ready) => { while (!ready()) await new Promise((done) => setTimeout(done, 50)); };
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
    await new Promise((done) => setTimeout(done, 20));
    const list = card.querySelector("details .bars") ?? card.querySelector(".bars");
    for (const li of list?.children ?? []) shown.values["p_" + li.dataset.class] = Number(li.querySelector(".value").title);
    for (const dd of card.querySelectorAll("dd[data-of]")) shown.values[dd.dataset.of] = Number(dd.title);
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
	Values                   map[string]float64
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
	var said struct {
		Failure string
		Results map[string]seenResult
		Bad     []string
	}
	select {
	case body := <-done:
		if err := json.Unmarshal(body, &said); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Kill()
		<-ended
	case err := <-ended:
		t.Fatalf("%s ended: %v", cmd.Path, err)
	}
	if said.Failure != "" || len(said.Bad) > 0 || len(said.Results) != len(given) {
		t.Fatalf("%s: %q, against the policy %q, %d of %d results", folder, said.Failure, said.Bad, len(said.Results), len(given))
	}
	return said.Results
}

// rowsOf reads a CSV file by the base name of its paths.
func rowsOf(t *testing.T, text string) (rows map[string]map[string]string) {
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

// A page shows the rows of score: pictures of every format, resized and cropped, and tables of all tasks. The network takes the
// same bits. No probability or entropy differs by 1e-6, as in exported models. The ResNet has pictures unlike those of
// training, and large scores: the kernels in WebAssembly add up in another order. Means are in units of 20. What it refuses, score refuses with the same words.
func TestWeb(t *testing.T) {
	fixtures, data := absolute(t, "..", "..", "fixtures"), absolute(t, "testdata")
	few := fewImages(t, filepath.Join(fixtures, "mnist"), 100)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	does := func(t *testing.T, args ...string) string {
		t.Helper()
		var said strings.Builder
		if code := run(t.Context(), append([]string{"swagwrap"}, args...), &said, &said); code != 0 && code != 3 {
			t.Fatalf("%q …: %d\n%s", args[:min(9, len(args))], code, &said)
		}
		return said.String()
	}
	does(t, "setup", "--provider", "web")
	pictures, err := filepath.Glob(filepath.Join(fixtures, "images", "files", "*.*"))
	if err != nil || len(pictures) < 100 {
		t.Fatal(len(pictures), err)
	}
	pictures = slices.DeleteFunc(pictures, func(path string) bool { return strings.HasSuffix(path, ".mpo") }) // score knows no such extension
	wrong := at("wrong.png")
	table := at("table.csv")
	// The columns of the network stand in another order, between others.
	text := "name,bp,age,site,bmi\n"
	for i := range 600 {
		text += fmt.Sprintf("n%d,%g,%g,%d,%g\n", i, math.Sin(float64(i)), math.Cos(float64(3*i)), i%2, float64(i%17)/7)
	}
	lacks := at("lacks.csv")
	for path, content := range map[string]string{wrong: "no picture", table: text, lacks: "age,bmi\n1,2\n", at("names.txt"): strings.Join(longNames(10), "\n") + "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	model := filepath.Join(few, "model.onnx")
	colour := func(n string) string { return filepath.Join(fixtures, "exporters", "torchvision-resnet18", n) }
	columns := []string{"--columns", "age,bmi,bp"}
	for _, tt := range []struct {
		name     string
		fit      []string
		sample   []string
		promise  bool
		files    []string
		tabular  bool
		tolerate float64
	}{
		{"grey", append([]string{"--task", "classes", "--preprocess", "resize-size=32 input-size=28 interpolation=bicubic mean=0.1307 std=0.3081", "--augment", "none", "--class-names", at("names.txt"), "--template", model}, glob(t, few, "states", "epoch-2*.pt")...),
			[]string{"--bn-data", filepath.Join(few, "train.npz")}, true, append(slices.Clone(pictures), wrong), false, 1e-6},
		{"colour", []string{"--task", "classes", "--preprocess", "imagenet input-size=16", colour("ckpt-1.onnx"), colour("ckpt-2.onnx")}, []string{"--bn", "keep"}, false, pictures, false, 4e-6},
		{"table", append(columns, "--task", "classes", filepath.Join(data, "table-1.onnx"), filepath.Join(data, "table-2.onnx")), nil, false, []string{table, lacks}, true, 1e-6},
		{"labels", append(columns, "--task", "labels", filepath.Join(data, "table-1.onnx"), filepath.Join(data, "table-2.onnx")), nil, false, []string{table}, true, 1e-6},
		{"regression", append(columns, "--task", "regression", "--targets", "head=log-variance mean=20 std=3", filepath.Join(data, "table-1.onnx"), filepath.Join(data, "table-2.onnx")), nil, false, []string{table}, true, 1e-5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, e, page, rows := at(tt.name+".p.safetensors"), at(tt.name+".safetensors"), at(tt.name), at(tt.name+".rows.csv")
			does(t, append([]string{"fit", "-q", "-o", p}, tt.fit...)...)
			does(t, append(append([]string{"sample", "-q", "-n", "5", "-o", e}, tt.sample...), p)...)
			if tt.promise {
				does(t, "score", "-q", "-o", at("val.npz"), e, filepath.Join(few, "val.npz"))
				does(t, "calibrate", "-q", "--coverage", "80%", "-o", at("promise.safetensors"), "--ensemble", e, at("val.npz"))
				e = at("promise.safetensors")
			}
			does(t, "export", "-q", "--web", page, e)
			shown := inWeb(t, page, tt.files)
			score := append([]string{"score", "-q", "--probs", "--on-error", "skip", "-o", rows, e}, tt.files[:1]...)
			if !tt.tabular {
				score = append(score[:len(score)-1], tt.files...)
			}
			does(t, score...)
			want := rowsOf(t, readFile(t, rows))
			var shownBy webpage.Page
			if err := json.Unmarshal([]byte(readFile(t, page, "page.json")), &shownBy); err != nil {
				t.Fatal(err)
			}
			network := shownBy.Network
			worst, compared := 0.0, 0
			differ := func(name, column, text string, got float64) {
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Errorf("%s: %s of %s is %q", tt.name, column, name, text)
				}
				worst, compared = max(worst, math.Abs(v-got)), compared+1
			}
			if tt.tabular {
				got := rowsOf(t, shown[filepath.Base(table)].CSV)
				for name, row := range want {
					for _, column := range slices.Sorted(maps.Keys(row)) {
						if text, ok := got[name][column]; ok && column != "path" && column != "prediction" {
							v, _ := strconv.ParseFloat(text, 64)
							differ(name, column, row[column], v)
						}
					}
					if row["prediction"] != got[name]["prediction"] {
						t.Errorf("%s: %s is predicted %s, want %s", tt.name, name, got[name]["prediction"], row["prediction"])
					}
				}
			} else {
				for _, path := range tt.files {
					name := filepath.Base(path)
					row, see := want[name], shown[name]
					if row["error"] != "" {
						if !strings.Contains(row["error"], strings.TrimPrefix(see.Error, name+": ")) || see.Error == "" {
							t.Errorf("%s: %s says %q, want %q", tt.name, name, see.Error, row["error"])
						}
						continue
					}
					taken, _, err := network.Read([]byte(readFile(t, path)))
					if err != nil || fmt.Sprintf("%x", sha256.Sum256(taken.Data)) != see.Digest {
						t.Errorf("%s: the network takes other bits of %s than in the browser, %v", tt.name, name, err)
					}
					for k := range 10 {
						column := fmt.Sprintf("p_%d", k)
						differ(name, column, row[column], see.Values[column])
					}
					differ(name, "predictive_entropy", row["predictive_entropy"], see.Values["entropy"])
					differ(name, "mutual_information", row["mutual_information"], see.Values["mutual_information"])
					if tt.promise && !strings.Contains(see.Text, fmt.Sprintf("(%s of 10)", row["set_size"])) {
						t.Errorf("%s: the set of %s has %s classes, and the page shows\n%s", tt.name, name, row["set_size"], see.Text)
					}
				}
			}
			t.Logf("%s: %d numbers of %d rows, at most %.2g apart", tt.name, compared, len(want), worst)
			if worst > tt.tolerate || compared < 500 {
				t.Errorf("%s: %d numbers, %.2g apart, want %g at most", tt.name, compared, worst, tt.tolerate)
			}
			if text := shown[filepath.Base(lacks)].Error; tt.name == "table" && !strings.Contains(text, `no column "bp" among ["age" "bmi"]`) {
				t.Errorf("a missing column: %q", text)
			}
		})
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
