package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// NotifyConfig says how people are told of gates, of loops that need them and of
// the end of these. The zero value tells nobody.
type NotifyConfig struct {
	// Command is a command line for the shell, Webhook an address; empty: none.
	Command, Webhook string
	// Desktop shows notices on the desktop, where there is one; Getenv is its
	// environment.
	Desktop bool
	Getenv  func(string) string
}

// way is a way to tell people, and its name.
type way struct {
	name string
	notify.Sender
}

// ways are those that the configuration asks for.
func (d *Daemon) ways(hold []*os.File) ([]way, error) {
	c := &d.cfg.Notify
	var all []way
	if c.Command != "" {
		all = append(all, way{"command", &notify.Command{Line: c.Command, Dir: d.cfg.HookDir, Hold: hold}})
	}
	if c.Webhook != "" {
		w, err := notify.NewWebhook(c.Webhook)
		if err != nil {
			return nil, err
		}
		all = append(all, way{"webhook", w})
	}
	if c.Desktop {
		desktop, err := notify.NewDesktop(c.Getenv)
		if err != nil {
			d.log.Warn("no notices on a desktop", "error", err)
		} else {
			all = append(all, way{"desktop", desktop})
		}
	}
	return all, nil
}

// notifiers are handlers that tell people of loops. They come behind those of the
// user, so that little is between a notice and the note that it was given: what a
// crash falls in between is told twice, with the same ID.
func (d *Daemon) notifiers() []hook.Registration {
	var all []hook.Registration
	for _, w := range d.told {
		for _, at := range []hook.Name{hook.GateOpened, hook.LoopPaused, hook.LoopComplete} {
			all = append(all, hook.Registration{Hook: at, Name: "notify." + w.name, Handler: d.notifier(w),
				Timeout: notify.Timeout, OnFault: hook.FaultContinues})
		}
	}
	return all
}

// tellGate notifies people of the gate of a run. That is not recorded: after a crash
// right behind the opening of a gate nobody is notified.
func (d *Daemon) tellGate(ctx context.Context, tree *perdure.Tree, number int) {
	if len(d.told) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, notify.Timeout)
	defer stop()
	n, err := d.runNotice(ctx, tree, number)
	if err != nil {
		d.log.Warn("nobody was told of a gate", "tree_id", string(tree.ID), "error", err)
		return
	}
	for _, w := range d.told {
		if err := w.Send(ctx, n); err != nil {
			d.log.Warn("nobody was told of a gate", "tree_id", string(tree.ID), "way", w.name, "error", err)
		}
	}
}

// runNotice says in words for people what a run asks.
func (d *Daemon) runNotice(ctx context.Context, tree *perdure.Tree, number int) (*notify.Notice, error) {
	gates, err := d.store.Gates(ctx, tree.ID)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(gates, func(g perdure.Gate) bool { return g.Number == number })
	if at < 0 {
		return nil, fmt.Errorf("gate %d is not there", number)
	}
	g, id := &gates[at], string(tree.ID)
	q, err := g.ParseQuestion()
	if err != nil {
		return nil, err
	}
	n := &notify.Notice{ID: fmt.Sprintf("%s/gate/%d", id, number), Event: notify.GateOpened, Tree: id, Time: g.OpenedAt,
		Folder: d.cfg.HookDir,
		Title:  id + " asks: " + q.Title + ": " + q.Text, Gate: &notify.Gate{Number: json.Number(strconv.Itoa(number)),
			Kind: string(g.Kind)}}
	ask(n, q.Options, func(answer string) string { return "perdure answer " + id + " " + answer })
	return n, nil
}

// notifier is a sender as a handler, which allows everything.
func (d *Daemon) notifier(s notify.Sender) hook.Handler {
	return hook.Func(func(ctx context.Context, m hook.Message) (hook.Reply, error) {
		n, err := noticeOf(&m)
		if err != nil {
			return hook.Reply{}, err
		}
		n.Folder = d.cfg.HookDir
		if err := s.Send(ctx, n); err != nil {
			return hook.Reply{}, fmt.Errorf("nobody was told: %w", err)
		}
		return hook.NewReply(hook.Allow, ""), nil
	})
}

// ask adds the answers that a gate takes, with the command that gives each.
func ask(n *notify.Notice, options []perdure.GateOption, command func(answer string) string) {
	lines := []string{n.Title}
	for _, o := range options {
		n.Gate.Options = append(n.Gate.Options, notify.Option{Answer: o.Answer, Effect: o.Effect, Command: command(o.Answer)})
		lines = append(lines, command(o.Answer)+": "+o.Effect)
	}
	n.Text = strings.Join(lines, "\n")
}

// noticeOf says in words for people what a hook says to handlers.
func noticeOf(m *hook.Message) (*notify.Notice, error) {
	raw, err := json.Marshal(m.Metadata.Inputs)
	if err != nil {
		return nil, err
	}
	var in struct {
		Gate     json.Number          `json:"gate_id"`
		Kind     string               `json:"kind"`
		Options  []perdure.GateOption `json:"options"`
		Status   string               `json:"status"`
		Selected string               `json:"selection_reason"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	id := m.Metadata.LoopID
	n := &notify.Notice{Event: notify.Event(m.Metadata.HookName), Loop: id, Iteration: m.Metadata.Iteration,
		Time: m.Timestamp, Status: in.Status}
	switch n.Event {
	case notify.GateOpened:
		n.ID, n.Title = id+"/gate/"+in.Gate.String(), id+" asks: "+m.Content
		n.Gate = &notify.Gate{Number: in.Gate, Kind: in.Kind}
		ask(n, in.Options, func(answer string) string { return fmt.Sprintf("perdure loop answer %s --loop %s", answer, id) })
	case notify.Paused:
		n.ID, n.Status = fmt.Sprintf("%s/paused/%d", id, m.Metadata.Iteration), string(record.Paused)
		n.Title = id + " is paused: " + m.Content
		n.Text = n.Title + "\nperdure loop resume " + id + ": goes on, once that is mended"
	case notify.Ended:
		n.ID = fmt.Sprintf("%s/ended/%d", id, m.Metadata.Iteration) // it may go on, and end again
		n.Title = id + " is " + in.Status + ": " + m.Content
		n.Text = strings.TrimRight(n.Title+"\n"+in.Selected, "\n") + "\nperdure loop report " + id +
			": tells what became of it"
	}
	return n, nil
}
