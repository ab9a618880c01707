package rlm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/repl/record"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// Turn is a turn of a REPL: a reply of the model, and what its code did.
type Turn struct {
	Turn int `json:"turn"`
	// State is completed, or failed if a block ended with an exception. The last turn has the
	// state of its task until all of its blocks have ended.
	State perdure.State `json:"state"`
	Reply string        `json:"reply"`
	// Call is the call of the reply in the journal, with its tokens and cost. A record that was
	// imported from a log has no calls, and the figures of replies are unknown.
	Call         perdure.CallID `json:"call_id,omitzero"`
	InputTokens  int64          `json:"input_tokens"`
	OutputTokens int64          `json:"output_tokens"`
	CostUSD      *float64       `json:"cost_usd"`
	// SubCalls counts the tasks of its sub-calls. Usage is what all requests of the turn took:
	// those for the reply, and those of its sub-calls and of the tasks below them.
	SubCalls int           `json:"sub_calls"`
	Usage    perdure.Usage `json:"usage"`
	Blocks   []TurnBlock   `json:"blocks"`
	// Unrecorded is set if the tree was imported from an export, which has no blocks.
	Unrecorded bool `json:"unrecorded,omitempty"`
}

// TurnBlock is a block of code of a turn.
type TurnBlock struct {
	// State is completed, failed if an exception ended it, or that of the task before its end.
	State perdure.State `json:"state"`
	Code  string        `json:"code"`
	// Output is what it printed, cut at 1 MiB; OutputBytes is the length of the whole.
	Output      string `json:"output"`
	OutputBytes int64  `json:"output_bytes"`
	// Failure is the exception that ended it, Final the answer that it set.
	Failure string `json:"failure,omitempty"`
	Final   string `json:"final,omitempty"`
	// Variables are those that it changed.
	Variables []string `json:"variables,omitempty"`
	// SubCalls counts the tasks of its sub-calls.
	SubCalls  int        `json:"sub_calls"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

// FirstLine returns the first line of the code that is neither blank nor a comment, else its
// first line.
func (b *TurnBlock) FirstLine() string {
	for line := range strings.Lines(b.Code) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return clip.FirstLine(b.Code)
}

// Turns returns the turns of a task that is answered by a REPL, nil for other tasks. calls are
// those of the task. A turn whose reply is being asked for has no reply yet.
func Turns(ctx context.Context, s *perdure.Store, t *perdure.Task, calls []perdure.Call) ([]Turn, error) {
	return turnsOf(ctx, s, t, calls, record.New(s).Blocks)
}

// turnsOf is [Turns] with a reader of the task's blocks.
func turnsOf(ctx context.Context, s *perdure.Store, t *perdure.Task, calls []perdure.Call,
	read func(context.Context, perdure.TreeID, perdure.TaskID) ([]record.Block, error)) ([]Turn, error) {
	n, err := nodeOf(t)
	switch {
	case err == nil && n.Log != nil:
		return logTurns(ctx, s, t, n.Log)
	case err != nil || n.Repl == nil:
		return nil, nil //nolint:nilerr // the plan of another program
	}
	p, ok := turn.Find(n.Repl.Profile)
	if !ok {
		return nil, nil
	}
	blocks, err := read(ctx, t.Tree, t.ID)
	if err != nil {
		return nil, err
	}
	made, err := subCallsOf(ctx, s, t)
	if err != nil {
		return nil, err
	}
	tree, err := s.Tree(ctx, t.Tree)
	if err != nil {
		return nil, err
	}
	var all []Turn
	for _, c := range replies(calls) {
		one := Turn{Turn: c.Position + 1, State: perdure.Completed, Reply: c.Response, Call: c.ID,
			Unrecorded:  tree.Kind == perdure.KindRecord,
			InputTokens: c.InputTokens, OutputTokens: c.OutputTokens, CostUSD: c.CostUSD, Blocks: []TurnBlock{}}
		code := codeOf(&p, c.Response)
		for i := range blocks {
			b := &blocks[i]
			if b.Turn != one.Turn || b.Index >= len(code) {
				continue
			}
			sub := made[[2]int{b.Turn, b.Index}]
			one.Blocks = append(one.Blocks, turnBlock(b, code[b.Index], stateOf(t), sub.tasks))
			one.SubCalls += sub.tasks
			addUsage(&one.Usage, &sub.usage)
		}
		one.setState(len(code), t)
		all = append(all, one)
	}
	return withRequests(all, t, calls), nil
}

// stateOf returns the state of a task, Partial if its answer lacks parts.
func stateOf(t *perdure.Task) perdure.State {
	if t.State == perdure.Completed && t.Partial {
		return perdure.Partial
	}
	return t.State
}

// setState sets the state of a turn whose reply has so many blocks.
func (t *Turn) setState(blocks int, task *perdure.Task) {
	ended := 0
	for i := range t.Blocks {
		switch {
		case t.Blocks[i].EndedAt == nil:
		case t.Blocks[i].Failure != "":
			t.State = perdure.Failed
			ended++
		default:
			ended++
		}
	}
	over := task.State == perdure.Completed && !task.Partial
	if ended < blocks && !over || ended < len(t.Blocks) {
		t.State = stateOf(task)
	}
}

// withRequests adds what the requests for the replies took, and the turn whose reply is asked
// for.
func withRequests(all []Turn, t *perdure.Task, calls []perdure.Call) []Turn {
	next := 1
	if len(all) > 0 {
		next = all[len(all)-1].Turn + 1
	}
	for i := range calls {
		c := &calls[i]
		if c.Position >= summaryPosition { // of the turns before this one
			c = new(calls[i])
			c.Position -= summaryPosition
		}
		if c.Position >= formPosition {
			continue
		}
		if c.Position+1 == next && c.State == perdure.CallStarted && !t.State.Terminal() {
			all = append(all, Turn{Turn: next, State: t.State, Call: c.ID, Blocks: []TurnBlock{}})
		}
		at := slices.IndexFunc(all, func(o Turn) bool { return o.Turn == c.Position+1 })
		if at < 0 {
			continue
		}
		u := perdure.Usage{Calls: int64(c.Tries), InputTokens: c.InputTokens, OutputTokens: c.OutputTokens,
			CachedTokens: c.CachedTokens}
		switch {
		case c.State == perdure.CallUncertain:
			u.Calls, u.UncertainCalls = 1, 1
		case c.CostUSD != nil:
			u.CostUSD = *c.CostUSD
		case c.State == perdure.CallCompleted || c.InputTokens+c.OutputTokens > 0:
			u.UnpricedCalls = 1
		}
		addUsage(&all[at].Usage, &u)
	}
	return all
}

func addUsage(sum, u *perdure.Usage) {
	sum.Calls += u.Calls
	sum.InputTokens += u.InputTokens
	sum.OutputTokens += u.OutputTokens
	sum.CachedTokens += u.CachedTokens
	sum.CostUSD += u.CostUSD
	sum.UnpricedCalls += u.UnpricedCalls
	sum.UncertainCalls += u.UncertainCalls
	sum.UncertainTokens += u.UncertainTokens
	sum.UncertainCostUSD += u.UncertainCostUSD
}

// replies returns the calls with the replies of the model, one for each turn: the last one.
func replies(calls []perdure.Call) []perdure.Call {
	var list []perdure.Call
	for _, c := range calls {
		if c.State != perdure.CallCompleted || c.Position >= formPosition {
			continue
		}
		list = slices.DeleteFunc(list, func(o perdure.Call) bool { return o.Position == c.Position })
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b perdure.Call) int { return a.Position - b.Position })
	return list
}

// codeOf returns the code that a reply has run: its blocks, or the variable that it names as
// the answer.
func codeOf(p *turn.Profile, reply string) (code []string) {
	r := p.Parse(reply)
	for _, b := range r.Blocks {
		code = append(code, b.Code)
	}
	if f := r.Final; f != nil && (f.Variable || f.Name) {
		code = []string{finalVar(f)}
	}
	return code
}

// madeCalls are the sub-calls of a block.
type madeCalls struct {
	tasks int
	usage perdure.Usage
}

// subCallsOf returns the sub-calls of a task by turn and block.
func subCallsOf(ctx context.Context, s *perdure.Store, t *perdure.Task) (map[[2]int]madeCalls, error) {
	made := make(map[[2]int]madeCalls)
	var repls []*perdure.Task
	var places [][2]int
	add := func(at [2]int, tasks int, u *perdure.Usage) {
		m := made[at]
		m.tasks += tasks
		addUsage(&m.usage, u)
		made[at] = m
	}
	err := eachSubCall(ctx, s, perdure.TaskFilter{Tree: t.Tree, Parent: &t.ID}, func(child *perdure.Task, n *node) {
		at := [2]int{n.Call.Turn, n.Call.Block}
		add(at, 1, &child.Usage)
		if n.Repl != nil {
			repls, places = append(repls, child), append(places, at)
		}
	})
	for i := range repls {
		if err != nil {
			return nil, err
		}
		var below map[[2]int]madeCalls
		below, err = subCallsOf(ctx, s, repls[i])
		for _, m := range below {
			add(places[i], 0, &m.usage)
		}
	}
	return made, err
}

// eachSubCall calls do for the tasks of sub-calls that a filter selects, page by page.
func eachSubCall(ctx context.Context, s *perdure.Store, f perdure.TaskFilter,
	do func(t *perdure.Task, n *node)) error {
	const page = 1000
	f.Limit, f.Brief = page, true
	for {
		list, err := s.Tasks(ctx, f)
		if err != nil {
			return err
		}
		for i := range list {
			if n, err := nodeOf(&list[i]); err == nil && n.Call != nil {
				do(&list[i], n)
			}
		}
		if len(list) < page {
			return nil
		}
		f.After = list[len(list)-1].ID
	}
}

func turnBlock(b *record.Block, code string, task perdure.State, made int) TurnBlock {
	out := TurnBlock{State: task, Code: code, SubCalls: made, StartedAt: b.StartedAt, EndedAt: b.EndedAt}
	r := b.Result
	if r == nil {
		return out
	}
	out.State = perdure.Completed
	out.Output, out.OutputBytes = r.Output, r.OutputBytes
	if r.Failure != nil {
		out.State, out.Failure = perdure.Failed, r.Failure.Type+": "+r.Failure.Message
	}
	if r.Final != nil {
		out.Final = r.Final.Text
	}
	for _, v := range r.Vars {
		out.Variables = append(out.Variables, v.Name)
	}
	return out
}

// TurnsJSON is [Turns] as JSON, nil for tasks without a REPL.
func TurnsJSON(ctx context.Context, s *perdure.Store, t *perdure.Task, calls []perdure.Call) (json.RawMessage, error) {
	all, err := Turns(ctx, s, t, calls)
	if err != nil || all == nil {
		return nil, err
	}
	return json.Marshal(all)
}

// TaskTurns are the turns of a task that is answered by a REPL.
type TaskTurns struct {
	Task  perdure.TaskID `json:"task_id"`
	Turns []Turn         `json:"turns"`
}

// TreeTurns returns the turns of the tasks of a tree that are answered by a REPL, in brief:
// without output, and with the first line of each block of code, exception and answer, and of
// a reply without code. It returns those of the root even before they have one. With task, it
// returns those of this task only.
func TreeTurns(ctx context.Context, s *perdure.Store, id perdure.TreeID, task perdure.TaskID) ([]TaskTurns, error) {
	tree, err := s.Tree(ctx, id)
	if err != nil || tree.Kind != KindRun && tree.Kind != perdure.KindRecord {
		return nil, err
	}
	blocks := record.New(s)
	tasks := []perdure.TaskID{task}
	if task == 0 {
		if tasks, err = blocks.Tasks(ctx, id); err != nil {
			return nil, err
		}
		if !slices.Contains(tasks, tree.Root) {
			tasks = slices.Insert(tasks, 0, tree.Root)
		}
	}
	var all []TaskTurns
	for _, id := range tasks {
		t, err := s.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		n, err := nodeOf(&t)
		if t.Tree != tree.ID || err != nil || n.Repl == nil && n.Log == nil {
			continue
		}
		calls, err := s.Calls(ctx, id)
		if err != nil {
			return nil, err
		}
		one := TaskTurns{Task: id}
		if one.Turns, err = turnsOf(ctx, s, &t, calls, blocks.Heads); err != nil {
			return nil, err
		}
		for i := range one.Turns {
			one.Turns[i].shorten()
		}
		all = append(all, one)
	}
	return all, nil
}

// shorten leaves the first lines.
func (t *Turn) shorten() {
	if len(t.Blocks) > 0 {
		t.Reply = ""
	}
	t.Reply = firstLine(t.Reply)
	for i := range t.Blocks {
		b := &t.Blocks[i]
		b.Code, b.Failure, b.Final = firstLine(b.FirstLine()), firstLine(b.Failure), firstLine(b.Final)
	}
}

// firstLine returns the first line of s that is not blank, cut.
func firstLine(s string) string {
	const most = 200
	return clip.Runes(clip.FirstLine(s), most)
}
