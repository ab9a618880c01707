package rlm_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model/openai"
	"github.com/perdure/perdure/rlm"
)

var (
	reDocument = regexp.MustCompile(`(?s)=== document \d+ of \d+: ("[^\n]*" lines \d+-\d+)([^\n]*) ===\n` +
		`(.*?)=== end of document \d+ ===\n`)
	reResult = regexp.MustCompile(`(?s)\n--- results? [^\n]* ---\n(.*?)\n(?:\n---|\n=== end of results)`)
	reTotal  = regexp.MustCompile(`"?alarms"?: ?(\d+)`)
)

// fairReply is the reply of a model that makes no mistakes: it counts the alarms in the documents that
// are not marked as repeated, and adds up what results say.
func fairReply(request string, structured bool) string {
	total := 0
	if results, isMerge := strings.CutPrefix(request[max(strings.Index(request, "=== results ==="), 0):],
		"=== results ==="); isMerge {
		for rest := results; ; {
			at := reResult.FindStringSubmatchIndex(rest)
			if at == nil {
				break
			}
			for _, m := range reTotal.FindAllStringSubmatch(rest[at[2]:at[3]], -1) {
				n, _ := strconv.Atoi(m[1])
				total += n
			}
			rest = rest[at[3]:]
		}
	} else if _, found, ok := strings.Cut(request, "=== what was found ==="); ok {
		for _, m := range reTotal.FindAllStringSubmatch(found, -1) {
			n, _ := strconv.Atoi(m[1])
			total += n
		}
	} else {
		for _, d := range reDocument.FindAllStringSubmatch(request, -1) {
			if !strings.Contains(d[2], "repeated for context, already counted") {
				total += strings.Count(d[3], "ALARM")
			}
		}
	}
	if structured {
		return fmt.Sprintf(`{"alarms": %d}`, total)
	}
	return fmt.Sprintf("alarms: %d", total)
}

// fairServer answers as fairReply, and with an error where refuse says so. It returns the messages of
// the requests.
func fairServer(t *testing.T, refuse func(text string) bool) (*openai.Model, func() []string) {
	t.Helper()
	read := func(body []byte) (text string, structured bool) {
		var req struct {
			Messages []struct{ Role, Content string }
			Format   json.RawMessage `json:"response_format"`
		}
		if err := json.Unmarshal(body, &req); err != nil {
			t.Error(err)
		}
		for _, m := range req.Messages {
			if m.Role == "user" {
				text = m.Content
			}
		}
		return text, req.Format != nil
	}
	server := replyserver.Start(t, func(r replyserver.Request) []byte {
		text, structured := read(r.Body)
		if refuse != nil && refuse(text) {
			return replyserver.JSON(400, `{"error": {"message": "no"}}`)
		}
		return replyserver.Chat(fairReply(text, structured))
	})
	m, err := openai.New(openai.Config{Model: "fair", BaseURL: server.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return m, func() (texts []string) {
		for _, r := range server.Requests() {
			text, _ := read(r.Body)
			texts = append(texts, text)
		}
		return texts
	}
}

// repeatLines makes a text of n lines of a form; each tenth has an alarm, always as many in each part
// as in another.
func repeatLines(n int, line func(i int, alarm string) string) string {
	var b strings.Builder
	for i := range n {
		alarm := "quiet"
		if i%10 == 4 {
			alarm = "ALARM"
		}
		b.WriteString(line(i, alarm))
	}
	return b.String()
}

func alarmLines(n int) string {
	return repeatLines(n, func(i int, a string) string {
		return fmt.Sprintf("station %04d says %s and no more than it\n", i, a)
	})
}

// truthCase is a context whose alarms a run counts.
type truthCase struct {
	name   string
	files  []file
	config map[string]any
	want   int
	// least is how many requests about documents there are at least.
	least int
}

const alarmSchema = `{"type":"object","properties":{"alarms":{"type":"integer"}},"required":["alarms"]}`

func truthCases() []truthCase {
	one := func(name, text string) []file { return []file{{name, text}} }
	log := func(i int, a string) string {
		return fmt.Sprintf("2026-03-04T05:06:%02dZ INFO unit %d is %s\n", i%60, i, a)
	}
	many := make([]file, 30)
	for i := range many {
		many[i] = file{fmt.Sprintf("logs/day-%02d.txt", i), alarmLines(20)}
	}
	code := func(form string) string {
		return repeatLines(60, func(i int, a string) string { return fmt.Sprintf(form, i, a, i) })
	}
	type M = map[string]any
	return []truthCase{
		{"text", one("a.txt", alarmLines(120)), nil, 12, 3},
		{"text with schema", one("a.txt", alarmLines(120)), M{"schema": json.RawMessage(alarmSchema)}, 12, 3},
		{"text without an end of the last line", one("a.txt", strings.TrimRight(alarmLines(125), "\n")), nil, 13, 3},
		{"text with line ends of Windows", one("a.txt", strings.ReplaceAll(alarmLines(120), "\n", "\r\n")), nil, 12, 3},
		{"paragraphs", one("a.md", repeatLines(120, func(i int, a string) string {
			return fmt.Sprintf("## Day %d\n\nIt was %s.\n\n", i, a)
		})), nil, 12, 3},
		{"CSV", one("a.csv", "station,state,remark\n"+repeatLines(150, func(i int, a string) string {
			return fmt.Sprintf("s%d,%s,\"a, b\"\n", i, a)
		})), nil, 15, 3},
		{"CSV whose rows have several lines", one("a.csv", "id;text\n"+repeatLines(80, func(i int, a string) string {
			return fmt.Sprintf("%d;\"first\nsecond %s\nthird\"\n", i, a)
		})), nil, 8, 2},
		{"TSV", one("a.tsv", "id\tstate\n"+repeatLines(200, func(i int, a string) string {
			return fmt.Sprintf("%d\t%s\n", i, a)
		})),
			nil, 20, 2},
		{"CSV without a header, with schema", one("a.csv", repeatLines(200, func(i int, a string) string {
			return fmt.Sprintf("%d,%s,7\n", i, a)
		})), M{"schema": json.RawMessage(alarmSchema)}, 20, 2},
		{"JSON lines", one("a.jsonl", repeatLines(120, func(i int, a string) string {
			return fmt.Sprintf("{\"id\": %d, \"state\": %q}\n", i, a)
		})), nil, 12, 3},
		{"log with times", one("a.log", repeatLines(120, log)), nil, 12, 3},
		{"log with times in a text file", one("a.txt", repeatLines(120, log)), nil, 12, 3},
		{"log with continued lines", one("a.log", repeatLines(60, func(i int, a string) string {
			return log(i, a) + "\tat main.run(main.go:3)\n\tat main.main\n"
		})), nil, 6, 3},
		{"log with an overlap that was asked for", one("a.log", repeatLines(120, log)), M{"overlap_tokens": 100}, 12, 3},
		{"text with a large overlap", one("a.txt", alarmLines(120)), M{"overlap_percent": 50}, 12, 3},
		{"CSV with an overlap that was asked for", one("a.csv", "id,state\n"+repeatLines(200, func(i int, a string) string {
			return fmt.Sprintf("%d,%s\n", i, a)
		})), M{"overlap_percent": 20}, 20, 2},
		{"Go", one("a.go", "package a\n\n"+code("func f%d() {\n\treport(\"%s\", %d)\n}\n\n")), nil, 6, 2},
		{"Python", one("a.py", code("def f%d(self):\n    self.report('%s', %d)\n\n\n")), nil, 6, 2},
		{"one long line", one("a.txt", strings.ReplaceAll(alarmLines(120), "\n", " ")), nil, 12, 3},
		{"one long line of tabs", one("a.txt", strings.NewReplacer("\n", "\t", " ", "\t").Replace(alarmLines(120))),
			nil, 12, 3},
		{"many files", many, nil, 60, 10},
		{"many files, two children each", many, M{"max_children": 2}, 60, 10},
		{"several levels", one("a.txt", alarmLines(400)), M{"max_children": 3}, 40, 10},
		{"several levels with schema", one("a.txt", alarmLines(400)),
			M{"max_children": 3, "schema": json.RawMessage(alarmSchema)}, 40, 10},
		{"map-reduce", one("a.txt", alarmLines(400)), M{"strategy": "map-reduce", "fan_in": 2}, 40, 10},
		{"one after another", one("a.txt", alarmLines(120)), M{"strategy": "sequential"}, 12, 3},
		{"alarms in one part only", one("a.txt", alarmLines(10)+
			strings.Repeat("all is quiet in this part of the log\n", 150)), nil, 1, 3},
		{"no alarm", one("a.txt", strings.Repeat("all is quiet in this part of the log\n", 150)), nil, 0, 3},
		{"answers put together, with schema", one("a.txt", alarmLines(120)),
			M{"merge": "concatenate", "schema": json.RawMessage(alarmSchema)}, 12, 3},
		{"answers without repetitions, with schema", one("a.txt", alarmLines(120)),
			M{"merge": "merge", "schema": json.RawMessage(alarmSchema)}, 12, 3},
		{"one part", one("a.txt", alarmLines(20)), nil, 2, 1},
		{"one text asked several times", one("a.txt", alarmLines(20)), M{"samples": 3}, 2, 3},
		{"one text asked several times, one answer written", one("a.txt", alarmLines(20)),
			M{"samples": 3, "merge": "vote"}, 2, 3},
	}
}

// A model that counts rightly what it is sent leads to the right total, whatever the text and the tree.
func TestTotalsAreTrue(t *testing.T) {
	t.Parallel()
	m, texts := fairServer(t, nil)
	b := newBench(t, models{"openai:fair": m})
	cases := truthCases()
	trees := make([]perdure.TreeID, len(cases))
	for i, tt := range cases {
		config := map[string]any{"model": "openai:fair", "planner": "split", "chunk_tokens": 300, "max_depth": 5,
			"merge": ""}
		if tt.config["samples"] != nil {
			config["planner"] = "none"
		}
		for k, v := range tt.config {
			config[k] = v
		}
		before := fmt.Sprintf("How many alarms are there? (%d)", i)
		trees[i] = b.launch(before, b.put(tt.files...), config).ID
	}
	stop := b.work(4)
	for i, tt := range cases {
		tree := b.wait(trees[i])
		root, err := b.store.Task(t.Context(), tree.Root)
		b.ok(err)
		found := reTotal.FindAllStringSubmatch(root.Result, -1)
		if tree.State != perdure.Completed || len(found) != 1 || found[0][1] != strconv.Itoa(tt.want) {
			t.Errorf("%s: tree %s with %q, want a total of %d", tt.name, tree.State, root.Result, tt.want)
		}
		asked := 0
		for _, text := range texts() {
			if strings.Contains(text, fmt.Sprintf("(%d)", i)) && strings.Contains(text, "=== document 1 of") {
				asked++
			}
		}
		if asked < tt.least {
			t.Errorf("%s: %d requests about documents, want at least %d", tt.name, asked, tt.least)
		}
	}
	stop()
}

// A merge knows which parts it has no result of, and a tree that is resumed has the whole total.
func TestTotalsOfPartialTrees(t *testing.T) {
	t.Parallel()
	broken := true
	m, texts := fairServer(t, func(text string) bool { return broken && strings.Contains(text, "station 0060") })
	b := newBench(t, models{"openai:fair": m})
	id := b.launch("How many alarms?", b.put(file{"a.txt", alarmLines(120)}),
		map[string]any{"model": "openai:fair", "chunk_tokens": 600, "max_attempts": 1, "merge": ""}).ID
	tree, root := b.finish(id, 2)
	if tree.State != perdure.Partial {
		t.Fatalf("the tree is %s: %q", tree.State, root.Result)
	}
	all := texts()
	last := all[len(all)-1]
	if !strings.Contains(last, "=== parts without a result ===") || !regexp.MustCompile(`- "a.txt" lines \d+-\d+\n`).
		MatchString(last) {
		t.Errorf("the merge does not know the missing part:\n%s", last)
	}
	broken = false
	_, err := b.exec.Resume(t.Context(), rlm.ResumeRequest{Tree: id})
	b.ok(err)
	if tree, root = b.finish(id, 2); tree.State != perdure.Completed || root.Result != "alarms: 12" {
		t.Errorf("resumed: the tree is %s with %q", tree.State, root.Result)
	}
	counts := make(map[string]int)
	for _, text := range texts() {
		counts[text]++
	}
	for text, n := range counts {
		if n > 1 && !strings.Contains(text, "station 0060") {
			t.Errorf("sent %d times:\n%.200s", n, text)
		}
	}
}

// Text that two parts share is marked in the later one, and records have none that is not asked for.
func TestRepeatedTextIsMarked(t *testing.T) {
	t.Parallel()
	m, texts := fairServer(t, nil)
	b := newBench(t, models{"openai:fair": m})
	for name, text := range map[string]string{"a.txt": alarmLines(120), "b.csv": "station,state\n" + repeatLines(300,
		func(i int, a string) string { return fmt.Sprintf("%d,%s\n", i, a) })} {
		b.finish(b.launch("How many alarms in "+name+"?", b.put(file{name, text}),
			map[string]any{"model": "openai:fair", "chunk_tokens": 600, "merge": ""}).ID, 2)
		var fresh, repeated []string
		for _, request := range texts() {
			if !strings.Contains(request, name) || strings.Contains(request, "=== results") {
				continue
			}
			for _, d := range reDocument.FindAllStringSubmatch(request, -1) {
				if d[2] == "" {
					fresh = append(fresh, strings.Split(strings.TrimSuffix(d[3], "\n"), "\n")...)
				} else {
					repeated = append(repeated, strings.Split(strings.TrimSuffix(d[3], "\n"), "\n")...)
				}
			}
		}
		slices.Sort(fresh)
		want := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		slices.Sort(want)
		if !slices.Equal(fresh, want) {
			t.Errorf("%s: %d lines to count of %d", name, len(fresh), len(want))
		}
		if len(repeated) == 0 {
			t.Errorf("%s: nothing is marked as repeated", name)
		}
		for _, line := range repeated {
			if strings.HasSuffix(name, ".csv") && line != "station,state" {
				t.Errorf("%s: the record %q is repeated", name, line)
			}
		}
	}
}

// Two questions about the same part share 95 % of the bytes of their messages.
func TestQuestionsSharePrompts(t *testing.T) {
	t.Parallel()
	m, texts := fairServer(t, nil)
	b := newBench(t, models{"openai:fair": m})
	id := b.put(file{"a.txt", alarmLines(120)}, file{"b.txt", alarmLines(10)})
	for _, config := range []map[string]any{{"planner": "none"}, {"chunk_tokens": 1500, "concurrency": 1},
		{"chunk_tokens": 1500, "concurrency": 1, "cite": true}} {
		config["model"] = "openai:fair"
		var asked [2][]string
		for i, prompt := range []string{"How many alarms are there?", "Which stations are quiet, and since when?"} {
			from := len(texts())
			if i == 1 && config["planner"] == nil && config["cite"] == nil {
				config["schema"] = json.RawMessage(alarmSchema)
			}
			b.finish(b.launch(prompt, id, config).ID, 1)
			for _, text := range texts()[from:] {
				if strings.Contains(text, "=== document") {
					asked[i] = append(asked[i], text)
				}
			}
		}
		for i, text := range asked[1] {
			before := asked[0][i]
			same := 0
			for same < min(len(text), len(before)) && text[same] == before[same] {
				same++
			}
			if share := float64(same) / float64(len(text)); share < 0.9 || len(text) > 4000 && share < 0.95 {
				t.Errorf("%v: part %d of %d bytes repeats %.1f %%", config, i, len(text), 100*share)
			}
		}
	}
}

// A tree of the released version, whose configuration has no version of prompts, makes the requests
// that its journal has, byte for byte.
func TestRequestsOfVersion1(t *testing.T) {
	t.Parallel()
	m, _ := fairServer(t, nil)
	b := newBench(t, models{"openai:fair": m})
	table := "id,state\n" + repeatLines(200, func(i int, a string) string { return fmt.Sprintf("%d,%s\n", i, a) })
	stored, err := b.store.Context(t.Context(), b.put(file{"a.txt", alarmLines(60)}, file{"b.csv", table}))
	b.ok(err)
	plan := fmt.Sprintf(`{"rlm": {"v": 1, "first": 0, "total": 5, "chunks": [0, 1188, -44, 880, -44, 660, 0, 1199,
		-60, 760], "whole": true, "manifest": %q, "window": 128000, "answer": 4096, "limited": true, "head": 9}}`, stored.Manifest)
	tree, err := b.store.CreateTree(t.Context(), perdure.TreeSpec{Kind: rlm.KindRun, Contexts: []string{stored.ID},
		Config: json.RawMessage(`{"model": "openai:fair", "merge": "summarize", "chunk_tokens": 300, "max_children": 3}`),
		Root: perdure.TaskSpec{Prompt: "How many alarms?", Merge: rlm.MergeSummarize, Metadata: json.RawMessage(plan),
			Strategy: perdure.Parallel, Policy: perdure.PolicyPartial,
			Context: perdure.ContextRef{Type: "full", Source: stored.ID, Length: stored.Bytes, Hash: stored.Pack}}})
	b.ok(err)
	if tree, _ = b.finish(tree.ID, 1); tree.State != perdure.Completed {
		t.Fatalf("the tree is %s", tree.State)
	}
	var got []string
	for _, task := range b.tasks(tree.ID) {
		calls, err := b.store.Calls(t.Context(), task.ID)
		b.ok(err)
		for _, c := range calls {
			got = append(got, c.RequestHash[:16])
		}
	}
	slices.Sort(got)
	// The hashes of the released version; the merge depends on the answers, which were others there.
	want := []string{"168f1a7855e8298e", "42181efe34db2d76", "95e6530eb7c2362a", "d17e2c3929a3b101", "d54170b3eeb1aa91"}
	if missing := slices.DeleteFunc(want, func(h string) bool { return slices.Contains(got, h) }); len(missing) > 0 {
		t.Errorf("requests of the released version are not made: %v, but %v", missing, got)
	}
}
