package extract_test

import (
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
		e := extract.New(extract.Config{TopK: 3})
		req := &model.Request{Prompt: prompt, Documents: docs}
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
		merged := extract.Merge([][]model.Citation{resp.Citations, again.Citations}, 0)
		if diff := cmp.Diff(resp.Citations, merged); diff != "" {
			t.Errorf("merging an answer with itself changes it:\n%s", diff)
		}
	})
}
