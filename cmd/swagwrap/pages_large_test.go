//go:build large

package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// measurePage runs in a page, with everything unfolded, and sends what a reader cannot see or read to the page around it.
const measurePage = `
addEventListener("load", async () => {
  for (const d of document.querySelectorAll("details")) d.open = true;
  await new Guarantee((done) => setTimeout(done, 500));
  const bad = [], name = (e) => e.tagName.toLowerCase() + " " + JSON.stringify(e.textContent.trim().slice(0, 60));
  const style = (e) => getComputedStyle(e), wide = (e) => e.scrollWidth > e.clientWidth + 1;
  if (document.documentElement.scrollWidth > innerWidth) bad.push("the page is " + document.documentElement.scrollWidth + " px wide");
  const scrolls = (e) => ["auto", "scroll"].includes(style(e).overflowX);
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg") || !e.checkVisibility()) continue;
    if (scrolls(e) && wide(e) && !e.nextElementSibling?.matches(".hint:not([hidden])")) bad.push("no hint that it scrolls: " + name(e));
    else if (scrolls(e) && wide(e) && !e.nextElementSibling.offsetHeight) bad.push("a hidden hint: " + name(e));
    if (!scrolls(e) && style(e).overflowX !== "visible" && wide(e)) bad.push("cut off: " + name(e));
    if (e.matches("td, th, h1, h2, h3, p, li, dt, dd, figcaption, summary, button") && wide(e)) bad.push("runs out of its box: " + name(e));
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let t; (t = texts.nextNode()); ) {
    const e = t.parentElement;
    if (!t.data.trim() || e.matches("script, style, title, desc, option, .alt") || !e.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(t);
    for (const r of range.getClientRects()) {
      let box = e;
      while (box && !scrolls(box)) box = box.parentElement;
      if (!box && (r.right > innerWidth + 1 || r.left < -1)) bad.push("beyond the screen: " + name(e));
    }
  }
  for (const svg of document.querySelectorAll("svg")) {
    const labels = [...svg.querySelectorAll("text")].filter((l) => l.textContent.trim()).map((l) => [l.textContent, l.getBoundingClientRect()]);
    labels.forEach(([a, r], i) => {
      for (const [b, q] of labels.slice(i + 1)) {
        const x = Math.min(r.right, q.right) - Math.max(r.left, q.left), y = Math.min(r.bottom, q.bottom) - Math.max(r.top, q.top);
        if (x > 1 && y > 0.35 * Math.min(r.height, q.height)) bad.push("labels collide: " + JSON.stringify(a) + " and " + JSON.stringify(b));
      }
    });
  }
  const first = [".headline", ".do", ".first figure", ".answers"].map((s) => document.querySelector(s)?.getBoundingClientRect().top ?? -1);
  parent.postMessage({ bad: [...new Set(bad)], first, width: innerWidth, ground: style(document.body).backgroundColor, of: FRAME }, "*");
});`

// A seenPage is what a page says in a frame.
type seenPage struct {
	Bad    []string
	First  []float64 // tops of the answer, what to do, the figure and the short answers, or −1
	Width  int
	Ground string
	Of     int
}

// chromium returns the path of the browser.
func chromium(t *testing.T) string {
	t.Helper()
	browser := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); browser == "" && err == nil {
			browser = path
		}
	}
	if browser == "" {
		t.Fatal("no Chromium: apt-get install chromium, or name one in $CHROMIUM")
	}
	return browser
}

// inChromium shows pages in frames of a width, light or dark, and returns what each says.
func inChromium(t *testing.T, dark bool, pages []string, widths []int) [][]seenPage {
	t.Helper()
	browser, dir := chromium(t), t.TempDir()
	frames := ""
	for i, page := range pages {
		for k, w := range widths {
			n := i*len(widths) + k
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			// The page's own policy would not let the measurement run.
			plain := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy"[^>]*>`).ReplaceAllString(string(content), "")
			script := "<script>" + strings.Replace(measurePage, "FRAME", fmt.Sprint(n), 1) + "</script></body>"
			name := fmt.Sprintf("%d.html", n)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(plain, "</body>", script, 1)), 0o666); err != nil {
				t.Fatal(err)
			}
			frames += fmt.Sprintf(`<iframe src="%s" style="border:0;position:absolute;top:0;left:0;width:%dpx;height:900px"></iframe>`, name, w)
		}
	}
	whole := filepath.Join(dir, "frames.html")
	const collect = `<pre id="said"></pre><script>const all=[];addEventListener("message",e=>{all.push(e.data);document.getElementById("said").textContent=JSON.stringify(all)})</script>`
	if err := os.WriteFile(whole, []byte("<!doctype html><meta charset=utf-8><body>"+collect+frames), 0o666); err != nil {
		t.Fatal(err)
	}
	scheme := map[bool]string{true: "0", false: "1"}[dark]
	cmd := exec.Command(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--blink-settings=preferredColorScheme="+scheme, "--window-size=1400,1000", "--virtual-time-budget=20000", "--dump-dom", "file://"+whole)
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	printed := regexp.MustCompile(`(?s)<pre id="said">(.*?)</pre>`).FindSubmatch(dom)
	var all []seenPage
	if printed == nil || json.Unmarshal([]byte(html.UnescapeString(string(printed[1]))), &all) != nil || len(all) != len(pages)*len(widths) {
		t.Fatalf("%d pages at %d widths, and the browser says %s", len(pages), len(widths), printed)
	}
	byPage := make([][]seenPage, len(pages))
	for i := range byPage {
		byPage[i] = make([]seenPage, len(widths))
	}
	for _, m := range all {
		byPage[m.Of/len(widths)][m.Of%len(widths)] = m
	}
	return byPage
}

// Nothing is cut off on any page, light or dark, on a wide screen, a narrow one and a phone: a box that scrolls says so, texts
// stay inside their boxes, and labels of figures do not collide. The first screen has the answer, what to do and a figure.
func TestPages(t *testing.T) {
	fixtures := absolute(t, "..", "..", "fixtures", "mnist")
	few := fewImages(t, fixtures, 300)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	page := func(name string, args ...string) string {
		t.Helper()
		var printed strings.Builder
		if code := run(t.Context(), append([]string{"swagwrap"}, args...), &printed, &printed); code != 0 {
			t.Fatalf("%q: %d\n%s", args, code, &printed)
		}
		return at(name)
	}
	train, val, test := filepath.Join(few, "train.npz"), filepath.Join(few, "val.npz"), filepath.Join(few, "test.npz")
	posterior, saved := at("posterior.safetensors"), at("ensemble.safetensors")
	page("", "fit", "--template", filepath.Join(few, "model.onnx"), "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "-o", posterior, filepath.Join(few, "states"))
	page("", "sample", "-n", "3", "--bn-data", train, "-o", saved, posterior)
	pages := []string{
		page("compare.html", "compare", "-n", "10", "--metrics", "all", "--methods", "all", "--bn-data", train, "--val", val, "--report", at("compare.html"), posterior, test),
		page("sweep.html", "sweep", "-n", "10", "--bn-data", train, "--val", val, "--report", at("sweep.html"), posterior, test),
		page("ood.html", "ood", "-n", "10", "--bn-data", train, "--val", val, "--report", at("ood.html"), posterior, test, train),
		page("geometry.html", "geometry", "--points", "7", "--bn-data", train, "--report", at("geometry.html"), posterior, val),
		page("montage.html", "score", "--montage", at("montage.html"), "-o", at("predictions.csv"), saved, val),
	}
	widths := []int{1280, 1024, 390}
	for _, dark := range []bool{false, true} {
		for i, at := range inChromium(t, dark, pages, widths) {
			for k, m := range at {
				for _, bad := range m.Bad {
					t.Errorf("%s at %d px, dark %v: %s", filepath.Base(pages[i]), widths[k], dark, bad)
				}
				var red, green, blue int
				if fmt.Sscanf(m.Ground, "rgb(%d, %d, %d)", &red, &green, &blue); m.Width != widths[k] || (red+green+blue < 3*64) != dark {
					t.Errorf("%s: %d px, a ground of %s, dark %v", filepath.Base(pages[i]), m.Width, m.Ground, dark)
				}
			}
			if first := at[0].First; i < 4 && (first[0] < 0 || first[1] < 0 || first[2] < 0 || max(first[0], first[1], first[2]) > 500) {
				t.Errorf("%s: the answer, what to do and the figure begin at %v px", filepath.Base(pages[i]), first)
			}
			if phone := at[2].First; i == 0 && (phone[3] < 0 || slices.Max(phone) > 640) {
				t.Errorf("%s on a phone: the answers and the figure begin at %v px", filepath.Base(pages[i]), phone)
			}
		}
	}
}

// The measurement finds what it is for.
func TestPagesMeasure(t *testing.T) {
	page := filepath.Join(t.TempDir(), "bad.html")
	const bad = `<!doctype html><body><h1 style="white-space:nowrap">A heading that is far too long for a telephone</h1>
<div style="overflow-x:auto"><div style="width:2000px">wide</div></div>
<div style="overflow:hidden;white-space:nowrap;width:80px">this text is cut off</div>
<svg viewBox="0 0 100 50"><text x="0" y="20">one</text><text x="5" y="20">two</text></svg></body>`
	if err := os.WriteFile(page, []byte(bad), 0o666); err != nil {
		t.Fatal(err)
	}
	found := strings.Join(inChromium(t, false, []string{page}, []int{390})[0][0].Bad, "\n")
	for _, want := range []string{"the page is ", `runs out of its box: h1 "A heading`, `no hint that it scrolls: div "wide"`, `cut off: div "this text`, `labels collide: "one" and "two"`, `beyond the screen: h1 "A heading`} {
		if !strings.Contains(found, want) {
			t.Errorf("no %q in\n%s", want, found)
		}
	}
}
