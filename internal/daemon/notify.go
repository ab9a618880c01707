package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// NotifyConfig configures the notifications about gates, loops that need attention and the
// end of loops. The zero value sends none.
type NotifyConfig struct {
	// Command is a command line for the shell, Webhook a URL; empty: none.
	Command, Webhook string
	// Desktop shows notifications on the desktop; Getenv returns its environment
	// variables.
	Desktop bool
	Getenv  func(string) string
	// ShowsTokens is set if the process shows the tokens of gates on its terminal. With
	// Terminal, notices about gates with a token are written there.
	ShowsTokens bool
	Terminal    io.Writer
	// UsesTokens is set if the process answers gates with their tokens on behalf of the user,
	// who does not see them.
	UsesTokens bool
}

// notifier sends notifications.
type notifier struct {
	name string
	notify.Sender
}

// newNotifiers returns the notifiers of the configuration.
func (d *Daemon) newNotifiers() ([]notifier, error) {
	c := &d.cfg.Notify
	var all []notifier
	if c.Command != "" {
		all = append(all, notifier{"command", &notify.Command{Line: c.Command, Dir: d.cfg.HookDir, Hold: d.hold()}})
	}
	if c.Webhook != "" {
		w, err := notify.NewWebhook(c.Webhook)
		if err != nil {
			return nil, err
		}
		all = append(all, notifier{"webhook", w})
	}
	if c.Desktop {
		desktop, err := notify.NewDesktop(c.Getenv)
		if err != nil {
			d.log.Warn("no desktop notifications", "error", err)
		} else {
			all = append(all, notifier{"desktop", desktop})
		}
	}
	if c.Terminal != nil {
		all = append(all, notifier{"terminal", &terminal{w: c.Terminal}})
	}
	return all, nil
}

// terminal writes notices about gates with a token to the terminal of the process.
type terminal struct{ w io.Writer }

// Send writes the notice.
func (t *terminal) Send(_ context.Context, n *notify.Notice) error {
	if n.Gate == nil || n.Gate.Token == "" {
		return nil
	}
	_, err := fmt.Fprintf(t.w, "%s\n%s\ntoken: %s\n", human.OneLine(n.Title), n.Gate.Approver, n.Gate.Token)
	return err
}

// tokensShown reports whether the user gets the tokens of gates. Notices on the desktop do not
// contain them: their programs take the text as arguments, which others can read.
func (d *Daemon) tokensShown() bool {
	c := &d.cfg.Notify
	return c.ShowsTokens || c.Terminal != nil || c.Command != "" || c.Webhook != ""
}

// GateToken returns the token of an open gate, "" if this process has not made it.
func (d *Daemon) GateToken(ctx context.Context, tree perdure.TreeID, number int) string {
	g, err := d.store.Gate(ctx, tree, number)
	if err != nil {
		return ""
	}
	return d.engine.GateToken(&g)
}

// tokenReplaced sends notices about a gate that got a new token. They are not recorded.
func (d *Daemon) tokenReplaced(ctx context.Context, tree *perdure.Tree, g *perdure.Gate) {
	q, err := g.ParseQuestion()
	if err != nil {
		d.log.Warn("notify about a gate", "tree_id", string(tree.ID), "error", err)
		return
	}
	id := loop.ID(tree)
	n := &notify.Notice{ID: id + "/gate/" + strconv.Itoa(g.Number) + "/token", Event: notify.GateOpened, Loop: id,
		Iteration: g.Iteration, Time: time.Now(), Title: id + " still asks: " + q.Title,
		Gate: &notify.Gate{Number: json.Number(strconv.Itoa(g.Number)), Kind: string(g.Kind),
			Approver: status.Approver(g.Approver), Token: d.engine.GateToken(g)}}
	ask(n, q.Options, func(answer string) string { return loopCommand(answer, id) })
	useToken(n, g.Approver)
	n.Text += "\n" + n.Gate.Approver
	d.send(ctx, tree, n)
}

// loopCommand returns the command that answers the gate of a loop.
func loopCommand(answer, loop string) string {
	return "perdure loop answer " + answer + " --loop " + loop
}

// send sends a notice and logs errors.
func (d *Daemon) send(ctx context.Context, tree *perdure.Tree, notice *notify.Notice) {
	ctx, stop := context.WithTimeout(ctx, notify.Timeout)
	defer stop()
	notice.Folder = d.cfg.HookDir
	for _, n := range d.notifiers {
		if err := n.Send(ctx, notice); err != nil {
			d.log.Warn("notify about a gate", "tree_id", string(tree.ID), "notifier", n.name, "error", err)
		}
	}
}

// handlers returns the notifiers as handlers of loops. They are called after the user's
// handlers. If the process crashes before a notification is recorded, it is sent again,
// with the same ID.
func (d *Daemon) handlers() []hook.Registration {
	var all []hook.Registration
	for _, n := range d.notifiers {
		for _, at := range []hook.Name{hook.GateOpened, hook.LoopPaused, hook.LoopComplete} {
			all = append(all, hook.Registration{Hook: at, Name: "notify." + n.name, Handler: d.notifyHandler(n),
				Timeout: notify.Timeout, OnFault: hook.FaultContinues})
		}
	}
	return all
}

// notifyGate sends notifications about the gate of a run. They are not recorded: after a
// crash directly after the gate was opened, none is sent.
func (d *Daemon) notifyGate(ctx context.Context, tree *perdure.Tree, number int) {
	if len(d.notifiers) == 0 {
		return
	}
	notice, err := d.runNotice(ctx, tree, number)
	if err != nil {
		d.log.Warn("notify about a gate", "tree_id", string(tree.ID), "error", err)
		return
	}
	d.send(ctx, tree, notice)
}

// runNotice returns the notification about the gate of a run.
func (d *Daemon) runNotice(ctx context.Context, tree *perdure.Tree, number int) (*notify.Notice, error) {
	g, err := d.store.Gate(ctx, tree.ID, number)
	if err != nil {
		return nil, err
	}
	id := string(tree.ID)
	q, err := g.ParseQuestion()
	if err != nil {
		return nil, err
	}
	n := &notify.Notice{ID: fmt.Sprintf("%s/gate/%d", id, number), Event: notify.GateOpened, Tree: id, Time: g.OpenedAt,
		Title: id + " asks: " + q.Title + ": " + q.Text,
		Gate:  &notify.Gate{Number: json.Number(strconv.Itoa(number)), Kind: string(g.Kind)}}
	ask(n, q.Options, func(answer string) string { return "perdure answer " + id + " " + answer })
	return n, nil
}

// notifyHandler returns a sender as a handler, which replies Allow.
func (d *Daemon) notifyHandler(s notify.Sender) hook.Handler {
	return hook.Func(func(ctx context.Context, m hook.Message) (hook.Reply, error) {
		n, err := noticeOf(&m)
		if err != nil {
			return hook.Reply{}, err
		}
		n.Folder = d.cfg.HookDir
		if err := d.addToken(ctx, n); err != nil {
			return hook.Reply{}, err
		}
		if err := s.Send(ctx, n); err != nil {
			return hook.Reply{}, fmt.Errorf("send notification: %w", err)
		}
		return hook.NewReply(hook.Allow, ""), nil
	})
}

// addToken adds to a notice about the gate of a loop who can answer, and the token. The hook's
// message, which is in the log of hooks, does not contain it.
func (d *Daemon) addToken(ctx context.Context, n *notify.Notice) error {
	if n.Gate == nil {
		return nil
	}
	number, err := strconv.Atoi(n.Gate.Number.String())
	if err != nil {
		return fmt.Errorf("read number of gate: %w", err)
	}
	g, err := d.store.Gate(ctx, loop.TreeOf(n.Loop), number)
	if err != nil {
		return err
	}
	n.Gate.Approver, n.Gate.Token = status.Approver(g.Approver), d.engine.GateToken(&g)
	useToken(n, g.Approver)
	n.Text = strings.TrimRight(n.Text+"\n"+n.Gate.Approver, "\n")
	return nil
}

// useToken adds the flag for the token to the commands of a gate that has one: the programs that
// receive the notice have no terminal. The text is for people, who need it only without one.
func useToken(n *notify.Notice, approver perdure.Approver) {
	if n.Gate.Token == "" {
		return
	}
	for i := range n.Gate.Options {
		o := &n.Gate.Options[i]
		if approver == perdure.ApproverToken {
			n.Text = strings.ReplaceAll(n.Text, o.Command+": ", o.Command+status.TokenFlag+": ")
		}
		o.Command += status.TokenFlag
	}
}

// ask adds the answers of a gate with their commands.
func ask(n *notify.Notice, options []perdure.GateOption, command func(answer string) string) {
	lines := []string{n.Title}
	for _, o := range options {
		n.Gate.Options = append(n.Gate.Options, notify.Option{Answer: o.Answer, Effect: o.Effect, Command: command(o.Answer)})
		lines = append(lines, command(o.Answer)+": "+o.Effect)
	}
	n.Text = strings.Join(lines, "\n")
}

// noticeOf returns the notification about the message of a hook.
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
		ask(n, in.Options, func(answer string) string { return loopCommand(answer, id) })
	case notify.Paused:
		n.ID, n.Status = fmt.Sprintf("%s/paused/%d", id, m.Metadata.Iteration), string(record.Paused)
		n.Title = id + " is paused: " + m.Content
		n.Text = n.Title + "\nperdure loop resume " + id + ": continues it when the cause is corrected"
	case notify.Ended:
		n.ID = fmt.Sprintf("%s/ended/%d", id, m.Metadata.Iteration) // it can be resumed and end again
		n.Title = id + " is " + in.Status + ": " + m.Content
		n.Text = strings.TrimRight(n.Title+"\n"+in.Selected, "\n") + "\nperdure loop report " + id + ": prints its report"
	}
	return n, nil
}
