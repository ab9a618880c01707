package detect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/planted"
)

// projects returns the clean projects of the corpus.
func projects(t testing.TB) []planted.Edit {
	edits, err := planted.Edits()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(edits, func(e planted.Edit) bool {
		was := seen[e.Language]
		seen[e.Language] = true
		return was || e.Language == "other"
	})
}

// Changes that lose nothing have no findings: files moved to other folders, and added
// text.
func TestHarmless(t *testing.T) {
	t.Parallel()
	all := projects(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(all).Draw(rt, "project")
		now := make(map[string]string)
		for name, text := range p.Old {
			if p.Language != "checks" && rapid.Bool().Draw(rt, "move "+name) {
				name = "deep/" + name
			}
			lines := strings.SplitAfter(text, "\n")
			if at := rapid.IntRange(0, len(lines)-1).Draw(rt, "blank line"); !strings.ContainsAny(text, "`") &&
				p.Language != "ruby" {
				lines[at] = lines[at] + "\n"
			}
			now[name] = strings.Join(lines, "")
		}
		report, err := detect.Run(context.Background(), &detect.Input{Mode: detect.Aggressive, Changes: changes(p.Old, now)})
		if err != nil {
			rt.Fatal(err)
		}
		if len(report.Findings) > 0 {
			rt.Fatalf("%s: %+v", p.Language, report.Findings)
		}
	})
}

// A planted cheat is found whatever else the change does, and independent of the order of
// the files.
func TestCheatsAmongTwins(t *testing.T) {
	t.Parallel()
	edits, err := planted.Edits()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		cheat := rapid.SampledFrom(edits).Filter(func(e planted.Edit) bool { return e.Cheat }).Draw(rt, "cheat")
		other := rapid.SampledFrom(edits).Filter(func(e planted.Edit) bool { return !e.Cheat }).Draw(rt, "twin")
		if together(other.Language) == together(cheat.Language) {
			rt.Skip("the projects are alike: what one loses may have moved into the other")
		}
		old, now := make(map[string]string), make(map[string]string)
		for n, text := range cheat.Old {
			old["a/"+n] = text
		}
		for n, text := range cheat.New {
			now["a/"+n] = text
		}
		if cheat.Pattern != "fixture-changed" { // its point is that nothing else changed
			for n, text := range other.Old {
				old["b/"+n] = text
			}
			for n, text := range other.New {
				now["b/"+n] = text
			}
		}
		report, err := detect.Run(context.Background(), &detect.Input{Changes: changes(old, now)})
		if err != nil {
			rt.Fatal(err)
		}
		if !slices.ContainsFunc(report.Findings, func(f detect.Finding) bool {
			return f.Pattern == cheat.Pattern && strings.HasPrefix(f.File, "a/") || f.Pattern == "test-removed"
		}) {
			rt.Fatalf("%s %s: %s, beside %s %s: %+v", cheat.Language, cheat.Pattern, cheat.Name, other.Language, other.Name,
				report.Findings)
		}
	})
}

// together returns the group of languages whose code calls each other, so that code lost
// in one file may be in another.
func together(language string) string {
	switch language {
	case "typescript":
		return "javascript"
	case "kotlin":
		return "java"
	}
	return language
}

// FuzzRun compares any two contents: it must not fail, and one compared with itself has
// no findings.
func FuzzRun(f *testing.F) {
	edits, err := planted.Edits()
	if err != nil {
		f.Fatal(err)
	}
	for i := range edits {
		for name, text := range edits[i].New {
			if old := edits[i].Old[name]; old != text {
				f.Add(name, old, text)
			}
		}
	}
	f.Add("a.yaml", "a: true", "a: false\nb: x || true # test")
	f.Add("testdata/x.snap", "a", "b")
	f.Fuzz(func(t *testing.T, name, old, now string) {
		report, err := detect.Run(context.Background(),
			&detect.Input{Mode: detect.Aggressive, Changes: edited(name, old, now)})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			text := now
			if f.Gone {
				text = old
			}
			if n := strings.Count(text, "\n") + 1; f.Line < 0 || f.Line > n || len(f.Evidence) > 200 || f.Confidence <= 0 ||
				f.Confidence > 1 {
				t.Fatalf("%+v in a text of %d lines", f, n)
			}
		}
		if report, err := detect.Run(context.Background(), &detect.Input{Changes: edited(name, old, old)}); err != nil ||
			len(report.Findings) > 0 {
			t.Fatalf("a text with itself: %+v, %v", report, err)
		}
	})
}

// FuzzCustom compiles and runs any pattern: it is refused with a reason, or runs without
// failing.
func FuzzCustom(f *testing.F) {
	f.Add("no-print", `\bprint\(`, "src/**/*.py", "code", "added", "print(1)\n# print(2)\n")
	f.Add("x", "(", "[", "comments", "removed", "a")
	f.Add("", "(a|b)*$", "{a,b}", "text", "", "ab\xff")
	f.Fuzz(func(t *testing.T, id, match, path, in, when, text string) {
		rules, err := detect.NewRules(detect.Config{Patterns: []detect.Custom{{
			ID: id, Type: detect.FeatureRemoval, Tier: detect.Hint, Severity: detect.Low, Message: "m", Match: match,
			Paths: []string{path}, In: in, When: when,
		}}})
		if err != nil {
			if !strings.Contains(err.Error(), "patterns[0]") {
				t.Fatalf("%v names no field", err)
			}
			return
		}
		for _, name := range []string{"src/a.py", "a.txt"} {
			for _, pair := range [][2]string{{"", text}, {text, ""}} {
				if _, err := detect.Run(context.Background(),
					&detect.Input{Rules: rules, Changes: edited(name, pair[0], pair[1])}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// large is a change of about n lines in files of 400: every second function has its body
// changed, every tenth test is renamed.
func large(n int) (old, now map[string]string) {
	old, now = make(map[string]string), make(map[string]string)
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("value%d", random.IntN(5000)) }
	for file := 0; n > 0; file++ {
		var a, b strings.Builder
		name := fmt.Sprintf("src/m%d.py", file)
		if file%2 == 0 {
			name = fmt.Sprintf("tests/test_m%d.py", file)
		}
		for i := range 40 {
			x, y, z := word(), word(), word()
			head := fmt.Sprintf("def %s_%d_%d(%s):\n", map[bool]string{true: "test", false: "work"}[file%2 == 0], file, i, x)
			body := fmt.Sprintf("    if not %s:\n        raise ValueError(\"%s\")\n    %s = compute(%s, %d)\n"+
				"    for item in %s:\n        log.info(\"%%s\", item)\n        %s += item\n    assert %s == %d\n    return %s\n",
				x, y, y, x, i, y, z, z, i*7, z)
			a.WriteString(head + body + "\n")
			if i%2 == 0 {
				body = strings.Replace(body, "compute(", "compute_all(", 1) + "    # more\n"
				n -= 10
			}
			if i%10 == 0 {
				head = strings.Replace(head, "_", "_renamed_", 1)
			}
			b.WriteString(head + body + "\n")
		}
		old[name], now[name] = a.String(), b.String()
	}
	return old, now
}

func benchmark(b *testing.B, lines int) {
	old, now := large(lines)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := detect.Run(b.Context(), &detect.Input{Changes: changes(old, now)}); err != nil {
			b.Fatal(err)
		}
	}
}

// The goals are 200 ms and 1 s.
func BenchmarkDiff1000(b *testing.B)  { benchmark(b, 1000) }
func BenchmarkDiff20000(b *testing.B) { benchmark(b, 20_000) }

// BenchmarkTouched checks one file after a tool call, in each language; its goal is 20
// ms.
func BenchmarkTouched(b *testing.B) {
	for _, p := range projects(b) {
		b.Run(p.Language, func(b *testing.B) {
			name, text := "", ""
			for n, t := range p.Old {
				if strings.Contains(t, "tea") && len(t) > len(text) {
					name, text = n, t
				}
			}
			for len(text) < 30<<10 { // about a thousand lines
				text += p.Old[name]
			}
			now := strings.Replace(text, "tea", "milk", 1)
			b.SetBytes(int64(len(text) + len(now)))
			for b.Loop() {
				if _, err := detect.Run(b.Context(), &detect.Input{Changes: edited(name, text, now)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
