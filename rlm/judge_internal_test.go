package rlm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
)

func TestNormalAnswer(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"Paris", " paris.\n", "**Paris**", "“PARIS”!", "`paris`", "Answer: Paris", "I think so.\n\n**Final answer:** Paris.", "final answer: \"Paris\""},
		{"1000", "1,000", "1000.0", "Answer: 1,000.00.", "+1000"},
		{"-0.5", "-0.50"},
		{`{"a":1,"b":[true]}`, "{\n \"b\": [true], \"a\": 1 }"},
		{"New  York\tCity", "new york city"},
		{"ﬁne", "fine"},
		{"straße", "STRASSE"},
		{"???"},
		{"", "  ", nothingHere, nothingHere + "\n"},
		{"1.5.2"}, {"1,5"}, {"15"}, {"{a}"}, {`{"a":1} x`},
	}
	of := make(map[string]int)
	for i, list := range same {
		for _, text := range list {
			key := normalAnswer(text)
			if want := normalAnswer(list[0]); key != want {
				t.Errorf("%q is %q, but %q is %q", text, key, list[0], want)
			}
			if before, there := of[key]; there && before != i {
				t.Errorf("%q is the same as %q", text, same[before][0])
			}
			of[key] = i
		}
	}
}

func FuzzNormalAnswer(f *testing.F) {
	for _, text := range []string{"Paris.", "Answer: 1,000", `{"a": [1, 2]}`, "**x**", "“ﬁne”", "\xff", "answer:\nanswer: b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key := normalAnswer(text)
		if again := normalAnswer(text + "\n"); again != key && !strings.HasSuffix(strings.TrimSpace(text), ":") {
			t.Errorf("%q is %q, with a line end %q", text, key, again)
		}
		if strings.TrimSpace(text) != "" && strings.TrimSpace(text) != nothingHere && key == "" {
			t.Errorf("%q is no answer", text)
		}
	})
}

func TestReadVerdict(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reply, problem, critique string
		score                    float64
	}{
		{reply: `{"score": 80, "critique": " more "}`, score: 80, critique: "more"},
		{reply: "Well.\n```json\n{\"score\": \"7.5\"}\n```\nDone.", score: 7.5},
		{reply: `I say {"score":0,"critique":["x"]} because`, score: 0},
		{reply: "It is good, 8 of 10.", problem: "no JSON"},
		{reply: "", problem: "empty"},
		{reply: `[80]`, problem: "not an object"},
		{reply: `{"points": 80}`, problem: "score: it is missing"},
		{reply: `{"score": "high"}`, problem: `score: "high" is not a number`},
		{reply: `{"score": null}`, problem: "score: null is not a number"},
		{reply: `{"score": "NaN"}`, problem: "not between 0 and 100"},
		{reply: `{"score": 101}`, problem: "score: 101 is not between 0 and 100"},
		{reply: `{"score": -1}`, problem: "score: -1 is not between 0 and 100"},
		{reply: `{"score": 8`, problem: "ends before it is complete"},
	}
	for _, tt := range tests {
		v, problems := readVerdict(tt.reply)
		if tt.problem != "" {
			if len(problems) != 1 || !strings.Contains(problems[0], tt.problem) || v.scored {
				t.Errorf("%q: %+v, problems %q, want %q", tt.reply, v, problems, tt.problem)
			}
			continue
		}
		if len(problems) != 0 || !v.scored || v.score != tt.score || v.critique != tt.critique {
			t.Errorf("%q: %+v, problems %q", tt.reply, v, problems)
		}
	}
}

func FuzzReadVerdict(f *testing.F) {
	for _, reply := range []string{`{"score": 80, "critique": "x"}`, "prose", "```\n{\"score\":1}\n```", `{"score":1e400}`} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		v, problems := readVerdict(reply)
		if v.scored == (len(problems) > 0) || v.score < 0 || v.score > maxScore || v.score != v.score {
			t.Errorf("%q: %+v, %q", reply, v, problems)
		}
	})
}

func TestReadScore(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]verdict{
		"12\n":              {score: 12, scored: true},
		" -0.5 \nbecause\n": {score: -0.5, scored: true, critique: "because"},
		"":                  {},
		"NaN":               {},
		"inf":               {},
		"12 points":         {},
		"good\n12":          {},
	} {
		got, err := readScore(reply)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(verdict{})); diff != "" || (err == nil) != want.scored {
			t.Errorf("%q: %v, %s", reply, err, diff)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	answer := &part{text: "Total: 42\nof which 7 are new\n", data: Data{Citations: make([]model.Citation, 2)}}
	structured := &part{text: `{"total": 42, "items": [1, 2, 3], "name": "x"}`}
	tests := []struct {
		rule string
		p    *part
		want float64
	}{
		{"len(text)", answer, 29},
		{"len(lines)", answer, 2},
		{"words * 10", answer, 70},
		{"text contains 'Total'", answer, 100},
		{"lower(text) contains 'nothing'", answer, 0},
		{"citations > 1 ? 50.5 : 0", answer, 50.5},
		{"data == nil", answer, 100},
		{"data.total", structured, 42},
		{"len(data.items) + 0.5", structured, 3.5},
		{"prompt == 'why' and text matches '[0-9]{2}'", answer, 100},
	}
	for _, tt := range tests {
		r, err := parseRule(tt.rule)
		if err != nil {
			t.Errorf("%s: %v", tt.rule, err)
			continue
		}
		if got, err := r.score("why", tt.p); err != nil || got != tt.want {
			t.Errorf("%s is %v, %v, want %v", tt.rule, got, err, tt.want)
		}
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"":                        "it is empty",
		"len(text) >":             "column 11: unexpected token EOF",
		"len(tex) > 1":            "column 5: unknown name tex",
		"text + 1":                "column 6: invalid operation: + (mismatched types string and int)",
		"text":                    "it is a string, and a score is a number",
		"lines":                   "it is a []string, and a score is a number",
		"1 +\n1":                  "more than one line",
		"now().Unix()":            "column 1: unknown name now",
		"äöü + nix":               "column 1: unknown name äöü",
		"'ä' + nix":               "column 7: unknown name nix",
		strings.Repeat("1+", 3e3): "the limit is 4096",
	} {
		_, err := parseRule(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", shorten(source, 40), err, want)
		}
	}
	for source, want := range map[string]string{
		"data.total": "column 6",
		"data":       "it has no value",
		"1.0 / 0":    "is not a number",
		"data ?? []": "is not a number",
		"[1][5]":     "out of range",
	} {
		r, err := parseRule(source)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if _, err := r.score("", &part{text: "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", source, err, want)
		}
	}
}

func FuzzRules(f *testing.F) {
	for _, source := range []string{"len(text)", "data.a.b > 1", "any(lines, # contains 'x')", "1 +", "text matches '('", "{'a': 1}", "let x = 1; x"} {
		f.Add(source, `{"a":{"b":2}}`)
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		if len(source) > 60 || len(text) > 100 {
			return // no rules that take long
		}
		r, err := parseRule(source)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: the error has several lines: %q", source, err)
			}
			return
		}
		a, errA := r.score("", &part{text: text})
		b, errB := r.score("", &part{text: text})
		if (errA == nil) != (errB == nil) || a != b && a == a && !strings.ContainsAny(source, "{d") { // maps have no order
			t.Errorf("%q of %q is %v and %v, %v and %v", source, text, a, b, errA, errB)
		}
	})
}

func TestWithoutMiddle(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ä", 1000)
	for _, n := range []int{0, 10, 100, 101, 1000, 1999, 2000, 5000} {
		got := withoutMiddle(text, n)
		if n >= len(text) {
			if got != text {
				t.Errorf("%d: cut", n)
			}
			continue
		}
		if len(got) > max(n, 60) || !strings.Contains(got, "of 2000 bytes the middle is left out") || strings.ContainsRune(got, '\ufffd') {
			t.Errorf("%d: %d bytes, %q", n, len(got), got)
		}
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	sized := func(tokens int) piece { return piece{text: strings.Repeat("x", tokens*4-pieceFrame)} }
	tests := []struct {
		sizes []int
		want  []int
	}{
		{[]int{30, 30, 40}, []int{3}},
		{[]int{30, 30, 41}, []int{2, 1}},
		{[]int{100, 100}, []int{1, 1}},
		{[]int{60, 60, 60}, []int{1, 1, 1}},
		{[]int{50, 50, 50, 50, 50}, []int{2, 2, 1}},
		{[]int{101}, []int{1}},
	}
	for _, tt := range tests {
		var pieces []piece
		for _, n := range tt.sizes {
			pieces = append(pieces, sized(n))
		}
		var got []int
		for _, g := range group(pieces, 100) {
			got = append(got, len(g))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.sizes, diff)
		}
	}
}
