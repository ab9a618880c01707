package rlm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// library makes files of plain text; one place holds what is asked for.
func library() []file {
	topics := []string{"harbour", "violin", "granite", "weather", "orchard", "engine"}
	var files []file
	for i := range 30 {
		var s strings.Builder
		for p := range 40 {
			topic := topics[(i+p)%len(topics)]
			fmt.Fprintf(&s, "Paragraph %d of book %d speaks of the %s at some length.\n"+
				"It has a second line about the %s, too.\n\n", p, i, topic, topic)
			if i == 17 && p == 23 {
				s.WriteString("The lighthouse keeper hid the brass key under the third stair.\n" +
					"Nobody but the ferryman knew of it.\n\n")
			}
		}
		files = append(files, file{fmt.Sprintf("books/%02d.txt", i), s.String()})
	}
	return files
}

func TestExtractFindsAndCites(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	files := library()
	id := b.put(files...)
	const prompt = "Where did the lighthouse keeper hide the brass key?"
	tree := b.launch(prompt, id, M{"chunk_tokens": 1500, "max_children": 4})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed || got.Partial {
		t.Fatalf("tree is %s, partial %v: %+v", got.State, got.Partial, root.Error)
	}
	if n := len(b.leaves(tree.ID)); n < 20 {
		t.Errorf("%d parts", n)
	}
	cited := data(t, &root).Citations
	if len(cited) == 0 || len(cited) > 10 || cited[0].File != "books/17.txt" ||
		!strings.Contains(cited[0].Text, "brass key") {
		t.Fatalf("citations are %+v", cited)
	}
	if !strings.Contains(root.Result, "books/17.txt") || !strings.Contains(root.Result, "builtin:extract") {
		t.Errorf("answer is %q", root.Result)
	}
	texts := make(map[string]string)
	for _, f := range files {
		texts[f.name] = f.text
	}
	for _, c := range cited {
		lines := strings.Split(texts[c.File], "\n")
		if quoted := strings.Join(lines[c.StartLine-1:c.EndLine], "\n"); quoted != c.Text {
			t.Errorf("%s:%d-%d is %q, cited as %q", c.File, c.StartLine, c.EndLine, quoted, c.Text)
		}
	}

	// The same without a split: the statistics are those of the whole context
	// in both, so the scores agree.
	one := b.launch(prompt, id, M{"planner": "none"})
	_, root = b.finish(one.ID, 1)
	direct := data(t, &root).Citations
	if len(b.tasks(one.ID)) != 1 || len(direct) == 0 || direct[0] != cited[0] {
		t.Errorf("asked at once the best is %+v, in parts %+v", direct, cited[0])
	}
}

func TestRecordsStaySmall(t *testing.T) {
	t.Parallel()
	b := newBench(t, models{"mock:m": echo(t)})
	id := b.put(file{"text.txt", numbered(3000)})
	prompt := strings.Repeat("a long prompt ", 1000)
	tree := b.launch(prompt, id, M{"model": "mock:m", "chunk_tokens": 400, "context_window": 8000})
	got, _ := b.finish(tree.ID, 8)
	if got.State != perdure.Completed {
		t.Fatalf("tree is %s", got.State)
	}
	var sum int
	tasks := b.tasks(tree.ID)
	for _, task := range tasks {
		if task.Depth == 0 {
			if task.Prompt != prompt {
				t.Error("the root does not have the whole prompt")
			}
			continue
		}
		ref, err := json.Marshal(task.Context)
		b.ok(err)
		sum += len(task.Prompt) + len(task.Metadata) + len(ref) + len(task.Result) + len(task.Data)
	}
	if mean := sum / (len(tasks) - 1); mean > 1200 {
		t.Errorf("a task takes %d bytes on average", mean)
	}
}

func TestSequentialExtractIsNotLedAstray(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	tree := b.launch("lighthouse keeper brass key", b.put(library()...), M{"chunk_tokens": 6000, "strategy": "sequential"})
	_, root := b.finish(tree.ID, 2)
	cited := data(t, &root).Citations
	if len(cited) == 0 || cited[0].File != "books/17.txt" {
		t.Errorf("citations are %+v", cited)
	}
}

func TestBatchExtract(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	files := library()[16:19]
	tree := b.launch("What does {file} tell about the brass key?", b.put(files...), M{"batch": true, "chunk_tokens": 800})
	got, root := b.finish(tree.ID, 4)
	if got.State != perdure.Completed {
		t.Fatalf("tree is %s: %+v", got.State, root.Error)
	}
	d := data(t, &root)
	if len(d.Notes) != 0 {
		t.Errorf("notes: %v", d.Notes)
	}
	found := false
	for _, c := range d.Citations {
		found = found || c.File == "books/17.txt" && strings.Contains(c.Text, "brass key")
	}
	if !found || !strings.Contains(root.Result, "## books/18.txt\n\n") {
		t.Errorf("answer is %q", root.Result)
	}
}
