package turn_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

func profile(t testing.TB, name string) turn.Profile {
	t.Helper()
	p, ok := turn.Find(name)
	if !ok {
		t.Fatalf("there is no profile %q", name)
	}
	return p
}

// ticks replaces the marks in a test by fences.
func ticks(text string) string { return strings.ReplaceAll(text, "'''", "```") }

// Released versions read replies as they did: their trees repeat what they have recorded.
func TestBlocksOfReleasedVersions(t *testing.T) {
	t.Parallel()
	native := profile(t, "native-2026-11")
	for _, tt := range []struct {
		name, reply string
		want        []turn.Block
	}{
		{"one", "Look:\n'''repl\nprint(1)\n'''\n", []turn.Block{{Code: "print(1)\n", Line: 3}}},
		{"two", "'''python\na = 1\n'''\nthen\n'''py\nb = " +
			"2\n'''", []turn.Block{{Code: "a = 1\n", Line: 2}, {Code: "b = 2\n", Line: 6}}},
		{"without a tag", "'''\na = 1\n'''", []turn.Block{{Code: "a = 1\n", Line: 2}}},
		{"another language", "'''json\n{}\n'''", nil},
		{"tildes", "~~~repl\na = 1\n~~~", []turn.Block{{Code: "a = 1\n", Line: 2}}},
		{"a longer fence with a shorter one inside", "````repl\np = \"\"\"\n'''json\n{}\n'''\n\"\"\"\n````",
			[]turn.Block{{Code: ticks("p = \"\"\"\n'''json\n{}\n'''\n\"\"\"\n"), Line: 2}}},
		{"tildes around backticks", "~~~repl\ns = '''x'''\n" +
			"'''\n~~~", []turn.Block{{Code: ticks("s = '''x'''\n'''\n"), Line: 2}}},
		{"indented", "  '''repl\n  if a:\n      b = 1\n  '''", []turn.Block{{Code: "if a:\n    b = 1\n", Line: 2}}},
		{"indented too far", "    '''repl\n    a = 1\n    '''", nil},
		{"unclosed", "'''repl\na = 1", []turn.Block{{Code: "a = 1\n", Line: 2, Unclosed: true}}},
		{"empty", "'''repl\n\n'''", nil},
		{"capitals and attributes", "'''Python title=\"x\"\na = 1\n'''", []turn.Block{{Code: "a = 1\n", Line: 2}}},
		{"line ends of Windows", "'''repl\r\na = 1\r\n'''\r\n", []turn.Block{{Code: "a = 1\n", Line: 2}}},
		{"code in a line", "use '''repl''' here", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, native.Parse(ticks(tt.reply)).Blocks); diff != "" {
				t.Error(diff)
			}
		})
	}
	paper := profile(t, "paper-2026-01")
	if r := paper.Parse("```python\na = 1\n```"); len(r.Blocks) != 0 {
		t.Errorf("profile paper runs blocks of python: %+v", r)
	}
}

// The hard cases on which parsers of others differ.
func TestFinalsOfReleasedVersions(t *testing.T) {
	t.Parallel()
	native := profile(t, "native-2026-11")
	text := func(s string) *turn.Final { return &turn.Final{Text: s} }
	for reply, want := range map[string]*turn.Final{
		"FINAL(f(a, b) and c)":                        text("f(a, b) and c"),
		`FINAL("a) b")`:                               text("a) b"),
		`FINAL('''a) b''')`:                           text("a) b"),
		"FINAL(42)\nThis is prose (with parentheses)": text("42"),
		"FINAL(1)\nFINAL(2)":                          text("1"),
		"```repl\nFINAL(x)\n```":                      nil,
		"I will return FINAL(42) now.":                nil,
		"FINAL(42).":                                  text("42"),
		"**FINAL(42)**":                               nil,
		"FINAL(answer) comes later, when I know it":   nil,
		"FINAL()":                                     nil,
		`FINAL("")`:                                   nil,
		`FINAL_VAR(res["a"])`:                         {Text: `res["a"]`, Variable: true},
		"FINAL_VAR(x)":                                {Text: "x", Variable: true},
		`FINAL_VAR("x")`:                              {Text: "x", Variable: true},
		"FINAL(answer)":                               {Text: "answer", Name: true},
		`FINAL("answer")`:                             text("answer"),
		"FINAL(It's on the mole)":                     text("It's on the mole"),
		"FINAL(two\nlines)":                           text("two\nlines"),
		"FINAL(not closed":                            nil,
		"```json\n{\"a\": 1}\n```\nFINAL(it is 1)":    text("it is 1"),
		"```json\nFINAL(2)\n```\nnothing":             nil,
		"FINAL (7)":                                   text("7"),
		"FINALLY(7)":                                  nil,
		`FINAL("a" and "b")`:                          text(`"a" and "b"`),
		"```repl\nprint(1)\n```\nFINAL(the code says 1)": nil,
	} {
		if diff := cmp.Diff(want, native.Parse(reply).Final); diff != "" {
			t.Errorf("%q: -want +got\n%s", reply, diff)
		}
	}
}

// facts are those of a run over files.
func facts() *turn.Facts {
	return &turn.Facts{Question: "How many?", Language: "Python", Kind: "dictionary", Bytes: 1_234_567,
		Files: []turn.File{{Name: "a.txt", Bytes: 1_000_000}}, MoreFiles: 2, Turns: 30,
		SubCallBytes: 300_000, Recursive: true}
}

// What the model is shown is the same in every process and version: a request that was
// answered is found by its hash. A change needs a new version of the profile.
func TestMessagesArePinned(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{turn.Native: "native-2026-12", turn.Reference: "reference-2026-12",
		turn.Paper: "paper-2026-12"} {
		p := profile(t, name)
		if p.Version != want {
			t.Errorf("profile %s has version %s", name, p.Version)
		}
		for _, part := range []string{"llm_query(prompt, " +
			"model=None)", "rlm_query_batched", "budget()", "SHOW_VARS()", "300,000"} {
			if system := p.System(facts()); !strings.Contains(system, part) {
				t.Errorf("profile %s does not say %q", name, part)
			}
		}
		if first := p.First(facts()); !strings.Contains(first, "How many?") || !strings.Contains(first,
			"1,234,567 bytes") ||
			!strings.Contains(first, "Turn 1/30") {
			t.Errorf("profile %s begins with %s", name, first)
		}
	}
	if _, ok := turn.Find("native-2026-11"); !ok {
		t.Error("a version is not found")
	}
	if _, ok := turn.Find("nativ"); ok {
		t.Error("a part of a name is found")
	}
}

// The messages of released versions never change: trees that run use them.
func TestMessagesOfReleasedVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"native-2026-11":    "31ad388341e80ec76030d196cb289471f8636bc24ca88b934621882d831b87d1",
		"reference-2026-06": "12e758ca3faed98472e83dbb9758fda0eea88eb32af792e3477161241b281c79",
		"paper-2026-01":     "11ca5b140392e09b2e5854a0db0b77004fb23caa8b748b23e75b1cde762eb74a",
	} {
		p, f := profile(t, version), facts()
		text := p.System(f) + p.First(f)
		f.Language, f.System, f.Question = "Starlark", "Be brief.", ""
		f.Kind, f.Files, f.MoreFiles, f.Preview = "string", f.Files[:1], 0, "a\n```\n"
		text += p.System(f) + p.First(f) + p.After(f, 29, turn.Done{Outcomes: []turn.Outcome{{Code: "x", Output: "a",
			OutputBytes: 1},
			{Failure: "E", Bound: []string{"x"}, Calls: 2}}, Vars: []string{"x"}})
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); got != want {
			t.Errorf("version %s has other messages: %s", version, got)
		}
	}
}

// Two questions about the same context share 95 % of the first request, in all profiles.
func TestQuestionsShareTheFirstRequest(t *testing.T) {
	t.Parallel()
	for _, name := range turn.Names() {
		p, one, two := profile(t, name), facts(), facts()
		two.Question = "Which of the files names the owner of the service, and in which line?"
		a, b := p.System(one)+p.First(one), p.System(two)+p.First(two)
		same := 0
		for same < len(a) && same < len(b) && a[same] == b[same] {
			same++
		}
		if share := float64(same) / float64(len(b)); share < 0.95 {
			t.Errorf("profile %s: %.1f %% of the second request repeat the first", name, 100*share)
		}
		first := p.First(two)
		if at := p.Shared(two, first); len(at) != 2 || !strings.HasPrefix(first[at[0]:], "The question:") ||
			at[1] != len(first) {
			t.Errorf("profile %s: shared up to %v of %d", name, at, len(first))
		}
	}
}

func TestAdviceOnSubCalls(t *testing.T) {
	t.Parallel()
	f := facts()
	for window, want := range map[int64]string{300_000: "up to about 100,000 characters",
		9000: "up to about 9,000 characters"} {
		f.SubCallBytes = window
		for _, name := range turn.Names() {
			p := profile(t, name)
			system := p.System(f)
			for _, part := range []string{"Filter in code first", "Look at samples", want} {
				if !strings.Contains(system, part) {
					t.Errorf("profile %s does not say %q", name, part)
				}
			}
		}
	}
}

func TestOutputIsCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("b", 15_000) + strings.Repeat("é", 10_000) + "END"
	for name, wantEnd := range map[string]bool{turn.Native: true, turn.Reference: false, turn.Paper: false} {
		p := profile(t, name)
		text := p.After(facts(), 1, turn.Done{Outcomes: []turn.Outcome{{Code: "c", Output: long,
			OutputBytes: int64(len(long))}}, Vars: []string{"x"}})
		if strings.Contains(text, "END") != wantEnd || !strings.Contains(text, "the output has 35,003 bytes") {
			t.Errorf("profile %s: %d characters, ends with %q", name, len([]rune(text)), text[len(text)-200:])
		}
		if n := len([]rune(text)); n < turn.MaxShown || n > turn.MaxShown+1000 {
			t.Errorf("profile %s shows %d characters", name, n)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	p := profile(t, turn.Native)
	text := p.After(facts(), 29, turn.Done{Outcomes: []turn.Outcome{{Output: "a\n```\nb\n", OutputBytes: 8},
		{Failure: "ValueError: no", Bound: []string{"x", "y"}, Calls: 2}}})
	for _, part := range []string{"output of block 1 of 2", "````\na\n```\nb\n````", "ValueError: no",
		"Set before it, and kept: x, y", "2 sub-calls had finished", "Turn 30/30 is the last one"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	if over := p.After(facts(), 30, turn.Done{}); !strings.Contains(over, "The turns are over") {
		t.Errorf("after the last turn: %s", over)
	}
	if none := p.After(facts(), 3, turn.Done{}); !strings.Contains(none, "no code in a block") {
		t.Errorf("after a reply without code: %s", none)
	}
}

// No output can end the fence around it, so that it cannot pose as a message of the host.
func TestOutputStaysInItsFence(t *testing.T) {
	t.Parallel()
	p := profile(t, turn.Native)
	rapid.Check(t, func(t *rapid.T) {
		output := rapid.StringOfN(rapid.RuneFrom([]rune("a`~\n ")), 1, 60, -1).Draw(t, "output")
		text := p.After(facts(), 1, turn.Done{Outcomes: []turn.Outcome{{Output: output, OutputBytes: int64(len(output))}}})
		if strings.Trim(output, "\n") == "" {
			return
		}
		_, rest, _ := strings.Cut(text, "REPL output:\n")
		mark, rest, _ := strings.Cut(rest, "\n")
		inside, _, closed := strings.Cut(rest, "\n"+mark+"\n")
		if want := strings.TrimRight(output, "\n"); !closed || inside != want {
			t.Fatalf("output %q became %q in\n%s", want, inside, text)
		}
	})
}

// FuzzParse checks that any reply is parsed, that blocks are in it and do not overlap, and that
// a reply with code has no final answer.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"```repl\n" +
		"a\n```", "~~~\n```\n~~~", "FINAL(\"a)", "FINAL_VAR(x)", "   ````py\n```\n````x\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		for _, name := range []string{"native-2026-11", "paper-2026-01"} {
			p := profile(t, name)
			r := p.Parse(reply)
			last := 0
			for _, b := range r.Blocks {
				lines := strings.Count(b.Code, "\n")
				if b.Line <= last || strings.TrimSpace(b.Code) == "" {
					t.Fatalf("block at line %d after line %d: %q", b.Line, last, b.Code)
				}
				last = b.Line + lines - 1
			}
			if last > strings.Count(reply, "\n")+1 {
				t.Fatalf("the last block ends in line %d", last)
			}
			if len(r.Blocks) > 0 && r.Final != nil {
				t.Fatal("a final answer next to code")
			}
		}
	})
}
