// Package report writes what became of a tree as a document for people:
// Markdown, or one HTML page that needs nothing else.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/rlm"
)

// Document is everything a report tells.
type Document struct {
	Tree   perdure.Tree
	Status client.Status
	// Prompt is the root's.
	Prompt string
	// Result is nil while the tree has not ended.
	Result *client.Result
	Data   client.Report
	// Turns are those of the root, if a REPL answered it.
	Turns []rlm.Turn
	// Gates are what people were asked.
	Gates []perdure.Gate
	// Context is the text that the tree answers from, with no ID if there is none.
	Context client.ContextInfo
}

// Read asks for everything about a tree. Of a tree that has not ended the parts
// are as they were when each was read.
func Read(ctx context.Context, c *client.Client, id perdure.TreeID) (*Document, error) {
	d := new(Document)
	var err error
	if d.Tree, err = c.Tree(ctx, id); err != nil {
		return nil, err
	}
	if d.Status, err = c.Status(ctx, id); err != nil {
		return nil, err
	}
	root, err := c.Task(ctx, d.Tree.Root)
	if err != nil {
		return nil, err
	}
	d.Prompt, d.Turns = root.Prompt, turns.Parse(root.Turns)
	if root.Context.Source != "" {
		// The text of an imported tree can be missing.
		if d.Context, err = c.ContextFiles(ctx, root.Context.Source); err != nil && !errors.Is(err, perdure.ErrNotFound) {
			return nil, err
		}
	}
	result, err := c.Result(ctx, id)
	if err == nil {
		d.Result = &result
	} else if !errors.Is(err, perdure.ErrConflict) {
		return nil, err
	}
	if d.Gates, err = c.Gates(ctx, id); err != nil {
		return nil, err
	}
	d.Data, err = c.Report(ctx, id)
	return d, err
}

// Formats lists the names of the formats that Write knows.
func Formats() []string { return []string{"md", "html"} }

// FormatOf is the format that a file's name asks for.
func FormatOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".html", ".htm":
		return "html"
	}
	return "md"
}

// Write writes the document in a format of Formats.
func (d *Document) Write(w io.Writer, format string) error {
	switch format {
	case "md":
		return d.Markdown(w)
	case "html":
		return d.HTML(w)
	}
	return fmt.Errorf("write report: %q is not a format", format)
}

func (d *Document) state() string { return status.State(&d.Status) }

func (d *Document) name() string {
	if d.Tree.Name != "" {
		return d.Tree.Name
	}
	return string(d.Tree.ID)
}

// fact is a line of the summary.
type fact struct{ Name, Value string }

func (d *Document) facts() []fact {
	s := &d.Status
	tasks := []string{status.Tasks(&s.Progress)}
	for _, c := range []struct {
		n    int64
		word string
	}{{s.Completed, "completed"}, {s.Running, "running"}, {s.Waiting, "waiting"}, {s.Queued, "queued"},
		{s.Failed, "failed"},
		{s.Cancelled, "cancelled"}} {
		if c.n > 0 {
			tasks = append(tasks, humanize.Comma(c.n)+" "+c.word)
		}
	}
	facts := []fact{{"State", d.state()}, {"Tasks", strings.Join(tasks, ", ")}}
	if from := rlm.Origin(d.Tree.Config); from != "" {
		facts = append(facts, fact{"Origin", from})
	}
	facts = append(facts, d.origin()...)
	if s.State.Terminal() {
		facts = append(facts, fact{"Took", status.Took(&s.Progress)})
	} else if facts = append(facts, fact{"Since", status.Took(&s.Progress)}); !s.Interrupted {
		facts = append(facts, fact{"ETA", human.ETA(s.ETASeconds)})
	}
	facts = append(append(facts, d.gates()...), fact{"Usage", status.Usage(s.Usage)})
	if s.Completed > 0 {
		facts = append(facts, fact{"Task time", fmt.Sprintf("mean %s, median %s, 95th percentile %s",
			human.Seconds(s.MeanTaskSeconds), human.Seconds(s.P50TaskSeconds), human.Seconds(s.P95TaskSeconds))})
	}
	facts = append(facts, fact{"Started", human.Stamp(d.Tree.CreatedAt)})
	if d.Tree.CompletedAt != nil {
		facts = append(facts, fact{"Ended", human.Stamp(*d.Tree.CompletedAt)})
	}
	return append(facts, fact{"Generated", human.Stamp(d.Data.At)})
}

// origin returns what the answer is from, and how to go on with a tree that lacks parts.
func (d *Document) origin() []fact {
	var facts []fact
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, human.OneLine(value)})
		}
	}
	model, flags := rlm.Settings(d.Tree.Config)
	add("Model", model)
	add("Flags", flags)
	add("Context", d.files())
	s := &d.Status
	if rlm.CanResume(&d.Tree) && (s.Interrupted || s.State == perdure.Partial || s.State == perdure.Failed) {
		add("Continue with", "perdure resume "+string(d.Tree.ID))
	}
	return facts
}

// files returns the number, the size and the first names of the files of the context.
func (d *Document) files() string {
	c := &d.Context
	if c.ID == "" {
		return ""
	}
	text := fmt.Sprintf("%s, %s", human.Count(c.Files, "file"), human.Size(c.Bytes))
	if len(c.Names) == 0 {
		return text
	}
	text += ": " + strings.Join(c.Names, ", ")
	if more := c.Files - int64(len(c.Names)); more > 0 {
		text += fmt.Sprintf(" and %s more", humanize.Comma(more))
	}
	return text
}

// maxGates is how many gates are listed, the last ones.
const maxGates = 10

// gates say what people were asked by a run, and what they decided.
func (d *Document) gates() []fact {
	var facts []fact
	for i := max(0, len(d.Gates)-maxGates); i < len(d.Gates); i++ {
		g := &d.Gates[i]
		if !g.Run { // a loop has a report of its own
			continue
		}
		text := status.Gate(g.Tree, g.Number, g.Waiting)
		switch {
		case g.AnsweredAt != nil:
			text = g.Answer
			if g.AnsweredBy != "" {
				text += " by " + g.AnsweredBy
			}
			text += " after " + human.Duration(g.AnsweredAt.Sub(g.OpenedAt))
			if g.Reason != "" {
				text += ": " + g.Reason
			}
		case d.Status.State.Terminal():
			text = "not answered before the end"
		}
		facts = append(facts, fact{fmt.Sprintf("Gate %d", g.Number), human.OneLine(text)})
	}
	return facts
}

// failure is why the tree has no result; empty when it has one.
func (d *Document) failure() string {
	if d.Result == nil || d.Result.Error == nil || d.Tree.State != perdure.Failed {
		return ""
	}
	return d.Result.Error.Kind + ": " + d.Result.Error.Message
}

// answer is the tree's answer; false when there is none.
func (d *Document) answer() (string, bool) {
	if d.Result == nil || d.Result.State != perdure.Completed && d.Result.State != perdure.Partial {
		return "", false
	}
	return d.Result.Text(), true
}

func milliseconds(ms float64) string { return human.Seconds(ms / 1000) }

// rowText is what a row of the outline says behind its sign.
func rowText(r *client.ReportRow) string {
	text := human.OneLine(r.Label)
	if r.Folded > 0 {
		state := string(status.OfRow(&r.OutlineRow))
		if state == "" {
			state = "in several states"
		}
		text = fmt.Sprintf("%s more %s, to %s", humanize.Comma(r.Folded), state, r.To)
		if r.Error != nil {
			text = fmt.Sprintf("%s more failed: same error, to %s", humanize.Comma(r.Folded), r.To)
		}
	}
	return text
}

// belowText tells what is below a row that is not shown.
func belowText(r *client.ReportRow) string {
	if r.Below == 0 {
		return ""
	}
	return "with " + human.Count(r.Below, "task") + " below"
}
