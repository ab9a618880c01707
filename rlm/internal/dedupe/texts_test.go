package dedupe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/rlm/internal/dedupe"
)

func TestUnion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		list []string
		want string
	}{
		{"nothing", nil, ""},
		{"one", []string{"a\n\nb\n"}, "a\n\nb"},
		{"equal texts", []string{"same", "other", "same\n"}, "same\nother"},
		{"lines, order kept", []string{"b\na", "c\nb", "a\nd"}, "b\na\nc\nd"},
		{"blocks", []string{"one\ntwo\n\nthree", "three\n\nfour"}, "one\ntwo\n\nthree\n\nfour"},
		{"blocks are equal without the space around", []string{"x\n\n one", "one \n\n\n\ny"}, "x\n\n one\n\ny"},
		{"a text's own repetition stays", []string{"a\na", "b"}, "a\na\n\nb"},
		{"code keeps its braces", []string{"f {\n}\ng {\n}", "h {\n}"}, "f {\n}\ng {\n}\n\nh {\n}"},
		{"fences stay whole", []string{"```go\na\n\n}\n```", "```go\nb\n\n}\n```"},
			"```go\na\n\n}\n```\n\n```go\nb\n\n}\n```"},
		{"an open fence", []string{"```\na\n\nb", "a"}, "```\na\n\nb\n\na"},
		{"empty texts", []string{"", "a", "\n\n"}, "a"},
		{"parts without help", []string{dedupe.Nothing, "a", dedupe.Nothing + "\n"}, "a"},
		{"no part helps", []string{dedupe.Nothing, dedupe.Nothing}, dedupe.Nothing},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, dedupe.Union(tt.list)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func FuzzUnion(f *testing.F) {
	f.Add("a\nb", "b\nc")
	f.Add("```\nx\n\ny\n```", "x\n\n~~~\ny")
	f.Add("", "\n\n \n")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := dedupe.Union([]string{a, b})
		if again := dedupe.Union([]string{a, b, a, b}); again != got && !strings.Contains(a+b, "```") &&
			!strings.Contains(a+b, "~~~") {
			t.Errorf("%q and %q make %q, twice each %q", a, b, got, again)
		}
		for line := range strings.SplitSeq(a, "\n") {
			line = strings.TrimSpace(line)
			if line != dedupe.Nothing && !strings.Contains(got, line) {
				t.Errorf("%q is lost from %q and %q: %q", line, a, b, got)
			}
		}
	})
}

func TestNormalAnswer(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"Paris", " paris.\n", "**Paris**", "“PARIS”!", "`paris`", "Answer: Paris",
			"I think so.\n\n**Final answer:** Paris.", "final answer: \"Paris\""},
		{"1000", "1,000", "1000.0", "Answer: 1,000.00.", "+1000"},
		{"-0.5", "-0.50"},
		{`{"a":1,"b":[true]}`, "{\n \"b\": [true], \"a\": 1 }"},
		{"New  York\tCity", "new york city"},
		{"ﬁne", "fine"},
		{"straße", "STRASSE"},
		{"???"},
		{"", "  ", dedupe.Nothing, dedupe.Nothing + "\n"},
		{"1.5.2"}, {"1,5"}, {"15"}, {"{a}"}, {`{"a":1} x`},
	}
	of := make(map[string]int)
	for i, list := range same {
		for _, text := range list {
			key := dedupe.Normal(text)
			if want := dedupe.Normal(list[0]); key != want {
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
	for _, text := range []string{"Paris.", "Answer: 1,000", `{"a": [1, 2]}`, "**x**", "“ﬁne”", "\xff",
		"answer:\nanswer: b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key := dedupe.Normal(text)
		if again := dedupe.Normal(text + "\n"); again != key && !strings.HasSuffix(strings.TrimSpace(text), ":") {
			t.Errorf("%q is %q, with a line end %q", text, key, again)
		}
		if strings.TrimSpace(text) != "" && strings.TrimSpace(text) != dedupe.Nothing && key == "" {
			t.Errorf("%q is not an answer", text)
		}
	})
}

func TestWithoutMiddle(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("ä", 1000)
	for _, n := range []int{0, 10, 100, 101, 1000, 1999, 2000, 5000} {
		got := dedupe.WithoutMiddle(text, n)
		if n >= len(text) {
			if got != text {
				t.Errorf("%d: cut", n)
			}
			continue
		}
		if len(got) > max(n, 60) || !strings.Contains(got, "of 2000 bytes the middle is left out") ||
			strings.ContainsRune(got, '\ufffd') {
			t.Errorf("%d: %d bytes, %q", n, len(got), got)
		}
	}
}
