package retrieve_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/index"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/packtest"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/retrieve"
)

func TestParse(t *testing.T) {
	t.Parallel()
	limits := retrieve.DefaultLimits()
	search := func(q string) retrieve.Request { return retrieve.Request{Kind: retrieve.Search, Text: q} }
	list := func(name string) retrieve.Request { return retrieve.Request{Kind: retrieve.List, Text: name} }
	read := func(f string, from, to int) retrieve.Request {
		return retrieve.Request{Kind: retrieve.Read, Text: f, Start: from, End: to}
	}
	for text, want := range map[string]retrieve.Reply{
		"SEARCH lease renewal\nREAD a b/c.go:10-20": {Requests: []retrieve.Request{search("lease renewal"),
			read("a b/c.go", 10, 20)}},
		"I look first.\n```\n- SEARCH: `x`\n* READ a.go\nLIST\n```": {Requests: []retrieve.Request{search("x"),
			read("a.go", 0, 0), {Kind: retrieve.List}}},
		"READ a.go:7":                   {Requests: []retrieve.Request{read("a.go", 7, 7)}},
		"READ a.go:7-":                  {Requests: []retrieve.Request{read("a.go", 7, 0)}},
		"ANSWER\nIt is.\nSEARCH x":      {Answered: true, Answer: "It is.\nSEARCH x"},
		"**ANSWER:** It is.":            {Answered: true, Answer: "It is."},
		"SEARCH x\nANSWER\nIt is.":      {Requests: []retrieve.Request{search("x")}, Early: true, Answer: "It is."},
		"It is.[^1]\n[^1]: a.go:1\n> x": {Answered: true, Answer: "It is.[^1]\n[^1]: a.go:1\n> x"},
		"ANSWER It is.":                 {Answered: true, Answer: "It is."},
		"SEARCHING\nANSWERED":           {Plain: true, Problem: "no line begins with SEARCH, LIST, READ or ANSWER"},
		"":                              {Plain: true, Problem: "no line begins with SEARCH, LIST, READ or ANSWER"},
		"LIST **/*_test.go\nLIST *.go\n- **LIST src/***\n**LIST:** src/*\n* LIST src/*": {Requests: []retrieve.Request{
			list("**/*_test.go"), list("*.go"), list("src/*"), list("src/*")}, MoreRequests: 1},
		"ANSWER": {Problem: "the answer is empty"},
		"SEARCH": {Problem: "SEARCH has no argument; write for example: SEARCH lease renewal"},
		"SEARCH a\nSEARCH b\nSEARCH c\nSEARCH d\nSEARCH e": {Requests: []retrieve.Request{search("a"), search("b"),
			search("c"), search("d")}, MoreRequests: 1},
		"SEARCH " + strings.Repeat("x", 401): {Problem: "the query has 401 bytes, the limit is 400: " +
			strings.Repeat("x", 77) + "…"},
	} {
		if diff := cmp.Diff(want, limits.Parse(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestLastAnswer(t *testing.T) {
	t.Parallel()
	limits := retrieve.DefaultLimits()
	for text, want := range map[string]string{
		"ANSWER\nyes": "yes", "yes": "yes", "SEARCH x": "", "SEARCH x\nANSWER\nyes": "yes", "ANSWER": "", " ": "",
		"SEARCH x\nANSWER yes": "yes", "SEARCH x\n**ANSWER**\nyes": "yes", "SEARCH x\n- ANSWER: yes\nno": "yes\nno",
		"SEARCH x\n**ANSWER**": "", "**ANSWER**": "",
	} {
		if got, ok := limits.LastAnswer(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}

// corpus is a context of some files.
func corpus(t testing.TB, size int) *pack.Reader {
	t.Helper()
	var files []packtest.File
	add := func(name, text string) { files = append(files, packtest.File{Name: name, Text: text}) }
	for i := range 3 * size {
		add(fmt.Sprintf("src/%d/file%d.txt", i%7, i), fmt.Sprintf("Paragraph %d tells of harbours.\n\n", i)+
			strings.Repeat("Nothing of note happens in this place.\n", 30))
	}
	add("src/light.txt", "The light of harbours.\n"+strings.Repeat("The lighthouse keeper sleeps.\n", 10*size))
	add("src/long.txt", "A line "+strings.Repeat("äöü ", 500*size)+"ends.\nThe next line is whole.\n")
	r, _ := packtest.Open(t, files...)
	return r
}

func open(t testing.TB, r *pack.Reader, room int) *retrieve.Session {
	t.Helper()
	x, err := index.BuildInMemory(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	s, err := retrieve.Open(t.Context(), retrieve.Config{Limits: retrieve.DefaultLimits(), Question: "Which light?",
		Reader: r, Room: room, Find: func(_ context.Context, q string, n int) ([]model.Citation, error) {
			return x.Find(q, n, nil)
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A prompt has the results of requests, the limits that cut them, and what was wrong.
func TestFollow(t *testing.T) {
	t.Parallel()
	r := corpus(t, 100)
	limits := retrieve.DefaultLimits()
	for reply, wants := range map[string][]string{
		"READ src/light.txt:2-3": {"=== \"src/light.txt\" lines 2-3 ===\nThe lighthouse keeper sleeps.\nThe lighthouse"},
		"READ light.txt": {"lines 1-400 ===",
			"(cut behind line 400 of 1001: a range has at most 400 lines and 16384 bytes; READ src/light.txt:401- goes on)"},
		"READ src/long.txt:1":                {"lines 1-1 ===\nA line äöü"},
		"READ src/lihgt.txt":                 {"there is no file \"src/lihgt.txt\"; there is src/light.txt"},
		"READ src/light.txt:2000":            {"(\"src/light.txt\" has 1,001 lines)"},
		"READ src/long.txt:1:3":              {"=== \"src/long.txt\" line 1 from column 3 ===\nline äöü"},
		"READ src/long.txt:1:99999999":       {"(line 1 of \"src/long.txt\" ends before byte 99999999)"},
		"SEARCH zebra":                       {"(nothing found; try other words)"},
		"SEARCH keeper":                      {"passages for \"keeper\":\n=== \"src/light.txt\" lines "},
		"LIST src":                           {"in \"src\":\n\"src/0/\", 43 files, ", "\"src/light.txt\", 1,001 lines, "},
		"LIST src/**/*.txt":                  {"(and 102 more; the limit is 200 entries"},
		"LIST nowhere":                       {"(no files; names are as in the passages"},
		"What?":                              {"(Not understood: no line begins with SEARCH, LIST, READ or ANSWER."},
		"SEARCH light\nANSWER\nYes":          {"(The answer behind the requests was ignored"},
		"LIST\nLIST\nLIST\nLIST\nLIST\nLIST": {"(2 requests not carried out: a reply has at most 4.)"},
	} {
		s := open(t, r, 100_000)
		before := s.Prompt(2, 12, false)
		if err := s.Follow(t.Context(), 1, limits.Parse(reply)); err != nil {
			t.Fatal(err)
		}
		after := s.Prompt(2, 12, false)
		for _, want := range wants {
			if !strings.Contains(after, want) || strings.Contains(before, want) {
				t.Errorf("%q: %q is missing in\n%s", reply, want, after[max(0, len(before)-200):])
			}
		}
	}
}

// requireShown fails if a document is not the text of the file at its lines.
func requireShown(t *testing.T, r *pack.Reader, docs []model.Document) {
	t.Helper()
	for _, d := range docs {
		text, err := r.Lines(d.File, d.StartLine, d.EndLine())
		if err != nil || !strings.Contains(text, strings.TrimSuffix(d.Text, "\n")) {
			t.Errorf("%q lines %d-%d were not shown as they are: %v", d.File, d.StartLine, d.EndLine(), err)
		}
	}
}

// In a small room, results are cut until only an answer is left to give.
func TestRoomEnds(t *testing.T) {
	t.Parallel()
	r := corpus(t, 100)
	const room = 8000
	s := open(t, r, room)
	for i := range 12 {
		if s.Full() {
			break
		}
		reply := fmt.Sprintf("READ src/light.txt:%d\nSEARCH harbours\nREAD src/long.txt\nLIST src/1", 1+i*100)
		if err := s.Follow(t.Context(), i+1, retrieve.DefaultLimits().Parse(reply)); err != nil {
			t.Fatal(err)
		}
	}
	if size := len(s.Prompt(12, 12, true)); !s.Full() || size > room+2000 {
		t.Errorf("full %v with %d bytes", s.Full(), size)
	}
	requireShown(t, r, s.Shown())
}

// Any replies: the requests stay within their limits, and what counts as shown is the text
// of the files.
func FuzzReplies(f *testing.F) {
	f.Add("SEARCH lease\nREAD src/long.txt:1\nREAD src/light.txt:390-410\x1fREAD src/light.txt:401-\x1fANSWER\nx")
	f.Add("LIST *\x1fLIST {[\x1fREAD :-\x1fREAD src/light.txt:99999999999-3\x1fSEARCH ANSWER")
	r := corpus(f, 2)
	limits := retrieve.DefaultLimits()
	f.Fuzz(func(t *testing.T, text string) {
		s := open(t, r, 5000)
		for i, reply := range strings.Split(text, "\x1f") {
			if i == retrieve.MaxReplies {
				break
			}
			p := limits.Parse(reply)
			if len(p.Requests) > limits.Requests || p.Answered && len(p.Requests) > 0 ||
				!p.Answered && len(p.Requests) == 0 && p.Problem == "" {
				t.Fatalf("%q: %+v", reply, p)
			}
			limits.LastAnswer(reply)
			if p.Answered {
				s.Unsupported(i+1, p.Answer)
				continue
			}
			if err := s.Follow(t.Context(), i+1, p); err != nil {
				t.Fatal(err)
			}
			if before := len(s.Prompt(i+1, 12, false)); i%3 == 2 && s.Shorten() && len(s.Prompt(i+1, 12, false)) >= before {
				t.Fatalf("%q: the prompt has %d bytes after it was shortened from %d", text, len(s.Prompt(i+1, 12, false)), before)
			}
		}
		requireShown(t, r, s.Shown())
	})
}

// READ FILE:LINE:COLUMN goes on within a line, up to its end, and what was shown counts with its column.
func TestReadWithinALine(t *testing.T) {
	t.Parallel()
	line := `{"log": "` + strings.Repeat("entry größe ", 6000) + `", "secret": "heliotrope"}`
	r, _ := packtest.Open(t, packtest.File{Name: "log.jsonl", Text: "{}\n" + line + "\n[]\n"})
	s := open(t, r, 400_000)
	limits := retrieve.DefaultLimits()
	reply, column, all := "READ log.jsonl:2", 1, ""
	for turn := 1; turn < 20 && reply != ""; turn++ {
		parsed := limits.Parse(reply)
		if err := s.Follow(t.Context(), turn, parsed); err != nil {
			t.Fatal(err)
		}
		if q := parsed.Requests[0]; turn > 1 && (q.Start != 2 || q.Column != column || q.String() != reply) {
			t.Fatalf("%s is %+v", reply, q)
		}
		prompt := s.Prompt(turn+1, 40, false)
		reply = ""
		if at := strings.LastIndex(prompt, "(cut within line 2: READ "); at >= 0 && strings.HasSuffix(strings.TrimSpace(
			prompt[:strings.Index(prompt[at:], "\n")+at]), "goes on)") {
			next, _, _ := strings.Cut(prompt[at+len("(cut within line 2: "):], " goes on)")
			if _, err := fmt.Sscanf(next, "READ log.jsonl:2:%d", &column); err != nil {
				t.Fatalf("%q: %v", next, err)
			}
			if all != next {
				all, reply = next, next
			}
		}
	}
	last := s.Prompt(30, 40, false)
	if !strings.Contains(last, `"secret": "heliotrope"}`) || !strings.Contains(last, "line 2 from column ") {
		t.Errorf("the end of the line was not shown: %.300s", last[max(0, len(last)-300):])
	}
	for _, d := range s.Shown() {
		if d.StartLine == 2 && !strings.HasPrefix(line[max(d.StartColumn-1, 0):], strings.TrimSuffix(d.Text, "\n")) &&
			!strings.Contains(d.Text, "\n[]") {
			t.Errorf("column %d was not shown as it is: %.80q", d.StartColumn, d.Text)
		}
	}
}

// Neighbouring lines that were shown become one text, but not behind a line that was cut:
// a quote over both would not be in the file.
func TestShownJoinsWholeLines(t *testing.T) {
	t.Parallel()
	r := corpus(t, 100)
	limits := retrieve.DefaultLimits()
	s := open(t, r, 100_000)
	for i, reply := range []string{"READ src/light.txt:500-600", "READ src/light.txt:590-700\nREAD src/light.txt:701-800",
		"READ src/long.txt:1", "READ src/long.txt:2"} {
		if err := s.Follow(t.Context(), i+1, limits.Parse(reply)); err != nil {
			t.Fatal(err)
		}
	}
	requireShown(t, r, s.Shown())
	var light, long int
	for _, d := range s.Shown() {
		switch {
		case d.File == "src/long.txt":
			long++
		case d.File == "src/light.txt" && d.StartLine <= 500 && d.EndLine() >= 800:
			light++
		}
	}
	if light != 1 || long != 2 {
		t.Errorf("%d joined ranges of light.txt, %d excerpts of long.txt", light, long)
	}
}

// Requests of a session are the same up to the shared places of the first of them.
func TestSharedPlaces(t *testing.T) {
	t.Parallel()
	s := open(t, corpus(t, 10), 100_000)
	var prompts []string
	var shared [][]int
	for reply := 1; reply <= 3; reply++ {
		prompts, shared = append(prompts, s.Prompt(reply, 12, false)), append(shared, s.Shared(false))
		if err := s.Follow(t.Context(), reply, retrieve.DefaultLimits().Parse("SEARCH keeper")); err != nil {
			t.Fatal(err)
		}
	}
	prompts, shared = append(prompts, s.Prompt(4, 12, true)), append(shared, s.Shared(true))
	for i, places := range shared {
		if want := min(i+1, 3); len(places) != want {
			t.Fatalf("request %d has %d places, want %d", i+1, len(places), want)
		}
		if !slices.Equal(places[:min(i, 3)], shared[max(i, 1)-1][:min(i, 3)]) {
			t.Errorf("request %d has the places %v, the one before %v", i+1, places, shared[i-1])
		}
		end := places[len(places)-1]
		if next := prompts[min(i+1, 3)]; next[:end] != prompts[i][:end] {
			t.Errorf("request %d differs from the next one before byte %d", i+1, end)
		}
	}
}

// A prompt that was too long loses its oldest passages first; what was left out can
// be shown again, and quotes of it are still checked.
func TestShorten(t *testing.T) {
	t.Parallel()
	r := corpus(t, 100)
	limits := retrieve.DefaultLimits()
	s := open(t, r, 40_000)
	if err := s.Follow(t.Context(), 1, limits.Parse("READ src/light.txt:500-600")); err != nil {
		t.Fatal(err)
	}
	shown := len(s.Shown())
	first := strings.Index(s.Prompt(2, 12, false), `=== "src/`)
	head, _, _ := strings.Cut(s.Prompt(2, 12, false)[first:], "\n")
	for i := 0; s.CanShorten(); i++ {
		before := s.Prompt(2, 12, false)
		if !s.Shorten() || i > 20 {
			t.Fatalf("not shortened, the prompt has %d bytes", len(before))
		}
		after := s.Prompt(2, 12, false)
		if len(after) > len(before)*3/4 && len(before) > 8000 || strings.Count(after, "marked as left out") != 1 {
			t.Errorf("%d bytes after %d:\n%s", len(after), len(before), after)
		}
		if i == 0 && (!strings.Contains(after, head+" (left out)\n") || !strings.Contains(after, "lines 500-")) {
			t.Errorf("not %s, the oldest passage, was left out first:\n%s", head, after)
		}
	}
	if after := s.Prompt(2, 12, false); strings.Contains(after, "600 ===\n") || len(s.Shown()) != shown {
		t.Errorf("%d of %d documents are shown:\n%s", len(s.Shown()), shown, after)
	}
	requireShown(t, r, s.Shown())
	if s.Shorten() {
		t.Error("shortened although there is nothing to leave out")
	}
	s = open(t, r, 40_000)
	for i, reply := range []string{"READ src/light.txt:500-800", "SEARCH which light"} {
		if err := s.Follow(t.Context(), i+1, limits.Parse(reply)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			s.Shorten()
		}
	}
	if after := s.Prompt(2, 12, false); !strings.Contains(after, head+"\n") || strings.Count(after, "(left out)") == 0 {
		t.Errorf("the passages were not shown again:\n%s", after)
	}
}
