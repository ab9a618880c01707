package model_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/model"
)

func TestToolLine(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"SEARCH", "{\n  \"query\": \"a\\nb\"\n}", `SEARCH {"query":"a\nb"}`},
		{"SEARCH", "", "SEARCH {}"},
		{"SEARCH", " \n", "SEARCH {}"},
		{"READ", "{\"file\":\r\n\"a", `READ {"file": "a`},
		{"a b\nc\u00e9", "{}", "a_b_c_ {}"},
		{strings.Repeat("x", 100), "{}", strings.Repeat("x", 64) + " {}"},
	} {
		if got := model.ToolLine(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q with %q is %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

// Any call is one line, and arguments that are JSON stay the same value.
func FuzzToolLine(f *testing.F) {
	f.Add("SEARCH", `{"query": "x"}`)
	f.Add("a\nb", "{\r\n")
	f.Fuzz(func(t *testing.T, name, arguments string) {
		line := model.ToolLine(name, arguments)
		if strings.ContainsAny(line, "\r\n") {
			t.Errorf("%q is more than one line", line)
		}
		if again := line[strings.IndexByte(line, ' ')+1:]; model.ToolLine("x", again) != "x "+again {
			t.Errorf("%q becomes %q", again, model.ToolLine("x", again))
		}
	})
}
