package acp

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
)

const (
	// pollEvery is the time between two queries of the progress of a run.
	pollEvery = 250 * time.Millisecond
	// maxPlanned is the maximum number of tasks in the plan of a run.
	maxPlanned = 20
)

// runView shows the progress of a run: the tasks below the root as the plan, and the run as a tool
// call.
type runView struct {
	t     *turn
	p     *Project
	tree  perdure.TreeID
	begun bool
	shown perdure.Progress
}

// followRun follows a run until it ends.
func (t *turn) followRun(ctx context.Context, p *Project, id perdure.TreeID) error {
	v := &runView{t: t, p: p, tree: id}
	g := newAsker(t, p, id, runTarget(id))
	defer g.close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := p.WaitTree(ctx, id)
		ended <- err
	}()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if err := v.poll(ctx, g); err != nil {
			stop()
			<-ended //nolint:errcheck // it was stopped here
			return err
		}
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			return v.poll(ctx, g)
		case <-tick.C:
		}
	}
}

// poll shows the progress if it has changed, and asks about an open gate.
func (v *runView) poll(ctx context.Context, g *asker) error {
	s, err := v.p.Status(ctx, v.tree)
	if err != nil {
		return err
	}
	if s.Gate != nil && s.Gate.Run && s.Gate.Rests {
		if err := g.consider(ctx, s.Gate.Number); err != nil {
			return err
		}
	}
	now := s.Progress
	if v.begun && now.State == v.shown.State && now.Completed == v.shown.Completed && now.Total == v.shown.Total &&
		now.Failed == v.shown.Failed && now.Running == v.shown.Running {
		return nil
	}
	v.shown = now
	if err := v.plan(ctx, &s); err != nil {
		return err
	}
	v.call(&s)
	return nil
}

// call shows the run as a tool call.
func (v *runView) call(s *client.Status) {
	fields := object{"toolCallId": string(v.tree), "status": callStatus(s.State),
		"title": fmt.Sprintf("%s: %d of %s done", v.tree, s.Completed, human.Count(s.Total, "task"))}
	if s.State.Terminal() {
		fields["content"] = textContent(status.Usage(s.Usage))
	}
	if v.begun {
		v.t.s.update(v.t.ss.id, "tool_call_update", fields)
		return
	}
	v.begun = true
	fields["kind"] = "search"
	v.t.s.update(v.t.ss.id, "tool_call", fields)
}

// callStatus returns the status of a tool call for the state of a tree.
func callStatus(s perdure.State) string {
	switch {
	case !s.Terminal():
		return statusInProgress
	case s == perdure.Completed || s == perdure.Partial:
		return statusCompleted
	}
	return statusFailed
}

// plan shows the tasks below the root, or the run as a whole if there are none.
func (v *runView) plan(ctx context.Context, s *client.Status) error {
	tree, err := v.p.Tree(ctx, v.tree)
	if err != nil {
		return err
	}
	page, err := v.p.Tasks(ctx, client.TaskQuery{Tree: v.tree, Parent: tree.Root, Brief: true, Limit: maxPlanned})
	if err != nil {
		return err
	}
	entries := []planEntry{}
	for i := range page.Tasks {
		task := &page.Tasks[i]
		entries = append(entries, entry(fmt.Sprintf("%s: %s", task.ID, human.OneLine(task.Prompt)), planStatus(task.State)))
	}
	switch {
	case len(entries) == 0:
		entries = append(entries, entry("Answer the question", planStatus(s.State)))
	case page.Next != 0:
		entries = append(entries, entry("Further tasks", planStatus(s.State)))
	default:
		entries = append(entries, entry("Merge the answers", planStatus(s.State)))
	}
	v.t.s.update(v.t.ss.id, "plan", object{"entries": entries})
	return nil
}

// planStatus returns the status of an entry of a plan for the state of a task.
func planStatus(s perdure.State) string {
	switch {
	case s.Terminal():
		return statusCompleted
	case s == perdure.Queued:
		return statusPending
	}
	return statusInProgress
}
