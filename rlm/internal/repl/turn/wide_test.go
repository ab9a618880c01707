package turn_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// replyParts are what replies consist of in the tests of properties.
func replyParts() []string {
	return []string{"```", "```repl", "```python3 ", "~~~", "````", "\n", "\n\n", "FINAL(", "FINAL_VAR(x)", ")",
		"\"\"\"", "'''", "'",
		"\\", "#", "- ", "1. ", "> ", ">>> ", "... ", "x = 1", "Output:", "<tool_call>", "</tool_call>",
		"<invoke name=\"repl\">",
		"<parameter name=\"code\">", "{\"code\": \"", "\"}", "[TOOL_CALLS]", "<|python_tag|>",
		"<|channel|>commentary to=python",
		"<|message|>", "<function=python>", "<parameter=code>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<|im_end|>",
		"f\"{x}\"",
		"len(", "é", "\x00", "\t", "    ", "In [1]: "}
}

// checkReply checks what holds for any reply.
func checkReply(t interface{ Fatalf(string, ...any) }, p *turn.Profile, reply string) {
	r := p.Parse(reply)
	last := 0
	for _, b := range r.Blocks {
		if strings.TrimSpace(b.Code) == "" || b.Line < last || b.Line > strings.Count(reply, "\n")+2 {
			t.Fatalf("%q: block %q at line %d after line %d", reply, b.Code, b.Line, last)
		}
		last = b.Line
	}
	if len(r.Blocks) > 0 && r.Final != nil {
		t.Fatalf("%q: a final answer next to code: %+v", reply, r.Final)
	}
	if f := r.Final; f != nil && strings.TrimSpace(f.Text) == "" {
		t.Fatalf("%q: an empty final answer", reply)
	}
	if again := p.Parse(reply); len(again.Blocks) != len(r.Blocks) || len(again.Notes) != len(r.Notes) {
		t.Fatalf("%q is read in two ways", reply)
	}
}

func TestReadingReplies(t *testing.T) {
	t.Parallel()
	p := profile(t, turn.Native)
	rapid.Check(t, func(t *rapid.T) {
		checkReply(t, &p, strings.Join(rapid.SliceOfN(rapid.SampledFrom(replyParts()), 0, 40).Draw(t, "parts"), ""))
	})
}

func FuzzReply(f *testing.F) {
	for _, part := range replyParts() {
		f.Add(part + "\n" + part)
	}
	p := profile(f, turn.Native)
	f.Fuzz(func(t *testing.T, reply string) { checkReply(t, &p, reply) })
}

// A reply of 10 MB is read in a time that does not grow with its square.
func TestLongReplies(t *testing.T) {
	t.Parallel()
	p := profile(t, turn.Native)
	size := 10 << 20
	for _, part := range []string{"```repl\nx = \"\"\"\\\n\\\"\"\"\n```\n", "```repl\nx = 1\n", "```\n", "````\n```\n",
		"FINAL(\n```\n",
		"FINAL(", "\"\"\"", "{\n", "{\"a\":\n", "<tool_call>{\"a\":", "<invoke name=\"a\">\n",
		"<tool_call>\n<function=a>\n", "Output:\n\n```\n\n",
		"- ", "> ", "`", "<", "[TOOL_CALLS][", "<execute>\n", "<|python_tag|>\n", "<parameter=a>", "\n"} {
		p.Parse(strings.Repeat(part, size/len(part)))
		size = 100 << 10 // the others show the same
	}
}

// Lists of names are bounded, with how many are left out.
func TestListsOfNamesAreBounded(t *testing.T) {
	t.Parallel()
	p, old := profile(t, turn.Native), profile(t, "native-2026-11")
	var names []string
	for range 1000 {
		names = append(names, strings.Repeat("n", 1000))
	}
	text := p.After(facts(), 1, turn.Done{Vars: names, Outcomes: []turn.Outcome{{Failure: "E", Bound: names}}})
	if len(text) > 15_000 || strings.Count(text, "and 950 more") != 2 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	if text := old.After(facts(), 1, turn.Done{Vars: names}); len(text) < 1_000_000 {
		t.Error("a released version shows another list")
	}
}
