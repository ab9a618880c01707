package rlm

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/folders"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/fanout"
)

// describeContext describes the files of the task for a plan: the list of all, with the
// beginnings of some; where that does not fit, the folders with their sizes and kinds of
// files, and the best passages for the task.
func (a *attempt) describeContext(ctx context.Context) (string, error) {
	files := a.planning().files(a.reads())
	if len(files) == 0 {
		return "", nil
	}
	room := 4 * int(a.run.plan.Window) / listShare
	if list, ok := listed(files, room); ok {
		return list + a.beginnings(files, room), nil
	}
	found, err := a.planPassages(ctx, files, room)
	return fmt.Sprintf("\n\n=== folders (%d files) ===\n%s=== end of folders ===\nA sub-task can name its files by "+
		"patterns, such as \"folder/**\".\n%s", len(files), folders.Describe(files, room), found), err
}

// listed lists files with their sizes; ok is false if the list has more than room bytes.
func listed(files []pack.File, room int) (list string, ok bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n\n=== files (%d) ===\n", len(files))
	for _, f := range files {
		fmt.Fprintf(&b, "%q, about %d tokens\n", f.Name, model.EstimateTokens(int(f.Length)))
		if b.Len() > room {
			return "", false
		}
	}
	b.WriteString("=== end of files ===\n")
	return b.String(), true
}

// beginnings shows how some of the files begin.
func (a *attempt) beginnings(files []pack.File, room int) string {
	var b strings.Builder
	for _, f := range files[:min(len(files), maxPreviews)] {
		docs, err := a.run.reader.Documents(f.Offset, min(f.Length, previewBytes))
		if room -= previewBytes + len(f.Name); err != nil || len(docs) == 0 || room < 0 {
			break
		}
		fmt.Fprintf(&b, "\n=== how %q begins ===\n%s\n", f.Name,
			strings.TrimRight(strings.ToValidUTF8(docs[0].Text, ""), "\n"))
	}
	return b.String()
}

// planPassages shows the best passages of the files for the task.
func (a *attempt) planPassages(ctx context.Context, files []pack.File, room int) (string, error) {
	parts := make(chunks, len(files))
	for i, f := range files {
		parts[i] = fanout.Chunk{Off: f.Offset, Length: f.Length}
	}
	found, err := a.findIn(ctx, a.query(), maxPlanPassages, parts)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range found {
		text := fmt.Sprintf("\n=== a passage for the task: %q lines %d-%d ===\n%s\n", c.File, c.StartLine, c.EndLine,
			clip.Bytes(c.Text, planPassageBytes))
		if b.Len()+len(text) > room {
			break
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// EventPlanUnusable records that the context of a task is split because no plan of the
// model was usable: its data has problem and parts.
const EventPlanUnusable perdure.EventKind = "task.plan_unusable"

// splitInstead has the text of a task read in parts because no plan was usable.
func (a *attempt) splitInstead(ctx context.Context, problem string) error {
	p := a.planning()
	_, frame := p.renderedTokens()
	r, err := p.roomOf(a.run.models[1], true)
	if err == nil && r.text-frame < minRoomTokens {
		err = fmt.Errorf("a part has room for %d tokens", r.text-frame)
	}
	if err != nil {
		return failf(KindPlan, "no plan was usable: %s; split instead: %w", problem, err)
	}
	var parts chunks
	for _, c := range a.reads() {
		cut, err := p.cut(min(r.text-frame, DefaultChunkTokens), c)
		if err != nil {
			return err
		}
		parts = append(parts, cut...)
	}
	whole := &node{Total: len(parts), File: a.node.File, Divided: a.node.Divided + 1, Head: max(p.head, a.node.Head),
		merge: a.partsMerge(a.l.Task.Merge)}
	nodes := whole.spread(parts, 0, a.run.cfg.MaxChildren)
	nodes[0].Note = fmt.Sprintf("the context was split into %d parts, because no plan was usable: %s", len(parts),
		clip.Bytes(problem, maxNoteBytes))
	if err := a.l.AppendEvent(ctx, EventPlanUnusable,
		map[string]any{"problem": clip.Bytes(problem, maxNoteBytes), "parts": len(parts)}); err != nil {
		return err
	}
	work := a.dividedWork(nodes)
	work.Open-- // there is no plan to wait for
	return a.spawn(ctx, nodes, work)
}

// maxNoteBytes bounds a note in the plan of a task.
const maxNoteBytes = 600
