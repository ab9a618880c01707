package extract_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

// Whatever the prompt and the text: no crash, true citations, a harmless text,
// and the same again the second time.
func FuzzGenerate(f *testing.F) {
	f.Add("aphids", "garden.md", gardenText)
	f.Add("func main", "main.go", "package main\n\n// main runs.\nfunc main() {\n\tprintln(\"hi\")\n}\n")
	f.Add("`x` é 漢字 HTTPServer_v2", "a\\b.PY", "class X:\r\n  \"\"\"é\r\n  HTTPServer_v2 漢字 x\r\n")
	f.Add("x", "x", "\xff\xfe x \x00\n\n\n")
	f.Add("=", "y.md", "Title\n=====\n\n# = #\n```\n= x\n")
	f.Add("import", "z.go", "import (\n\t\"x\"\n")
	f.Add("a b", "q.c", "/* a\nb */ int a(int b) {\n}\n#define a b\n")
	f.Fuzz(func(t *testing.T, prompt, file, text string) {
		docs := []model.Document{{File: file, StartLine: 7, Text: text}, {File: "other.txt", StartLine: 1, Text: prompt}}
		e := extract.New(extract.Config{TopK: 3, Workers: 2})
		prepared, err := e.Prepare(t.Context(), prompt, each(docs))
		if err != nil {
			t.Fatal(err)
		}
		req := &model.Request{Prompt: prompt, Documents: docs, Prepared: prepared}
		resp, err := e.Generate(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		checkText(t, resp.Text)
		if len(resp.Citations) > 3 {
			t.Errorf("%d citations", len(resp.Citations))
		}
		for _, c := range resp.Citations {
			checkCitation(t, c, docs)
		}
		again, err := e.Generate(t.Context(), req)
		if diff := cmp.Diff(resp, again); diff != "" || err != nil {
			t.Errorf("the second answer differs: %v\n%s", err, diff)
		}
		merged := extract.Merge(prompt, [][]model.Citation{resp.Citations, again.Citations}, 0)
		if diff := cmp.Diff(resp.Citations, merged); diff != "" {
			t.Errorf("merging an answer with itself changes it:\n%s", diff)
		}
	})
}

func FuzzStatistics(f *testing.F) {
	f.Add([]byte(`{"version":1,"passages":10,"words":100,"holding":{"frost":3},"common":1}`))
	f.Add([]byte(`{"version":1,"passages":0,"words":9223372036854775807,"holding":{"frost":-3},"common":-1}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, prepared []byte) {
		docs := []model.Document{{File: "g", StartLine: 1, Text: gardenText}}
		resp, err := extract.New(extract.Config{}).Generate(t.Context(), &model.Request{
			Prompt: "frost", Documents: docs, Prepared: json.RawMessage(prepared),
		})
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) {
				t.Errorf("error %v", err)
			}
			return
		}
		for _, c := range resp.Citations {
			checkCitation(t, c, docs)
		}
	})
}

// The scan of long text and the splitting of prompts see the same words.
func FuzzWords(f *testing.F) {
	for _, s := range []string{
		"plain words", "HTTPServer_v2 __x__ URLs IDs", "_", "aB1Cd", "größe ÉCOLE 漢字かな ไทย", "\xff\xc3",
		"x509 UTF8String sha256Sum", strings.Repeat("long", 40), "e\u0301 don’t",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if scanned, split := extract.Words(text); scanned != split {
			t.Errorf("%d words scanned, %d split: %q", scanned, split, text)
		}
		for _, p := range extract.Parts(text) {
			if p == "" || strings.ContainsAny(p, " _\n") {
				t.Errorf("part %q of %q", p, text)
			}
		}
		if terms := extract.Terms(text); len(terms) > 64 ||
			len(terms) != len(slices.Compact(slices.Sorted(slices.Values(terms)))) {
			t.Errorf("terms %q", terms)
		}
	})
}

// Passages are in order, do not overlap, and leave out blank lines only.
func FuzzPassages(f *testing.F) {
	f.Add("x.go", "package x\n\n// F does.\nfunc F() {\n}\n\nvar y = 1\n")
	f.Add("x.md", gardenText)
	f.Add("x.log", strings.Repeat("line\n", 100))
	f.Add("x", strings.Repeat("word ", 2000)+"\n\n\n"+strings.Repeat("\n", 50))
	f.Fuzz(func(t *testing.T, file, text string) {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		next := 1
		for _, p := range extract.Passages(file, text) {
			if p[0] < next || p[1] < p[0] || p[1] > len(lines) {
				t.Fatalf("passage %v behind line %d of %d", p, next-1, len(lines))
			}
			if p[1]-p[0]+1 > 40 {
				t.Errorf("passage %v is longer than 40 lines", p)
			}
			requireBlank(t, lines[next-1:p[0]-1])
			next = p[1] + 1
		}
		requireBlank(t, lines[next-1:])
	})
}

func requireBlank(t *testing.T, lines []string) {
	t.Helper()
	for _, l := range lines {
		if strings.Trim(l, " \t\r") != "" {
			t.Errorf("line %q is in no passage", l)
		}
	}
}
