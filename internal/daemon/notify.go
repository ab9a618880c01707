package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// NotifyConfig says how people are told of gates, of loops that need them and of
// their end. The zero value tells nobody.
type NotifyConfig struct {
	// Command is a command line for the shell, Webhook an address; empty: none.
	Command, Webhook string
	// Desktop shows notices on the desktop, where there is one; Getenv is its
	// environment.
	Desktop bool
	Getenv  func(string) string
}

// notifiers are handlers that tell people. They come behind those of the user, so
// that little is between a notice and the note that it was given: what a crash
// falls in between is told twice, with the same ID.
func (d *Daemon) notifiers(hold []*os.File) ([]hook.Registration, error) {
	c := &d.cfg.Notify
	senders := make(map[string]notify.Sender)
	if c.Command != "" {
		senders["command"] = &notify.Command{Line: c.Command, Dir: d.cfg.HookDir, Hold: hold}
	}
	if c.Webhook != "" {
		w, err := notify.NewWebhook(c.Webhook)
		if err != nil {
			return nil, err
		}
		senders["webhook"] = w
	}
	if c.Desktop {
		desktop, err := notify.NewDesktop(c.Getenv)
		if err != nil {
			d.log.Warn("no notices on a desktop", "error", err)
		} else {
			senders["desktop"] = desktop
		}
	}
	var all []hook.Registration
	for _, way := range []string{"command", "webhook", "desktop"} {
		if s := senders[way]; s != nil {
			for _, at := range []hook.Name{hook.GateOpened, hook.LoopPaused, hook.LoopComplete} {
				all = append(all, hook.Registration{Hook: at, Name: "notify." + way, Handler: d.notifier(s), Timeout: notify.Timeout, OnFault: hook.FaultContinues})
			}
		}
	}
	return all, nil
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

// noticeOf says in words for people what a hook says to handlers.
func noticeOf(m *hook.Message) (*notify.Notice, error) {
	raw, err := json.Marshal(m.Metadata.Inputs)
	if err != nil {
		return nil, err
	}
	var in struct {
		Gate     json.Number     `json:"gate_id"`
		Kind     string          `json:"kind"`
		Options  []record.Option `json:"options"`
		Status   string          `json:"status"`
		Selected string          `json:"selection_reason"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, err
	}
	id := m.Metadata.LoopID
	n := &notify.Notice{Event: notify.Event(m.Metadata.HookName), Loop: id, Iteration: m.Metadata.Iteration, Time: m.Timestamp, Status: in.Status}
	switch n.Event {
	case notify.GateOpened:
		n.ID, n.Title = id+"/gate/"+in.Gate.String(), id+" asks: "+m.Content
		n.Gate = &notify.Gate{Number: in.Gate, Kind: in.Kind}
		lines := []string{n.Title}
		for _, o := range in.Options {
			command := fmt.Sprintf("perdure loop answer %s --loop %s", o.Answer, id)
			n.Gate.Options = append(n.Gate.Options, notify.Option{Answer: o.Answer, Effect: o.Effect, Command: command})
			lines = append(lines, command+": "+o.Effect)
		}
		n.Text = strings.Join(lines, "\n")
	case notify.Paused:
		n.ID, n.Status = fmt.Sprintf("%s/paused/%d", id, m.Metadata.Iteration), string(record.Paused)
		n.Title = id + " is paused: " + m.Content
		n.Text = n.Title + "\nperdure loop resume " + id + ": goes on, once that is mended"
	case notify.Ended:
		n.ID = fmt.Sprintf("%s/ended/%d", id, m.Metadata.Iteration) // it may go on, and end again
		n.Title = id + " is " + in.Status + ": " + m.Content
		n.Text = strings.TrimRight(n.Title+"\n"+in.Selected, "\n") + "\nperdure loop report " + id + ": tells what became of it"
	}
	return n, nil
}
