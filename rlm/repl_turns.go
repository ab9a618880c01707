package rlm

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/record"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// Turn is a turn of a REPL: a reply of the model, and what its code did.
type Turn struct {
	Turn  int    `json:"turn"`
	Reply string `json:"reply"`
	// Call is the call of the reply in the journal, with its tokens and cost.
	Call         perdure.CallID `json:"call_id"`
	InputTokens  int64          `json:"input_tokens"`
	OutputTokens int64          `json:"output_tokens"`
	CostUSD      *float64       `json:"cost_usd"`
	Blocks       []TurnBlock    `json:"blocks"`
}

// TurnBlock is a block of code of a turn.
type TurnBlock struct {
	Code string `json:"code"`
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

// Turns returns the turns of a task that is answered by a REPL, nil for other tasks. calls are
// those of the task.
func Turns(ctx context.Context, s *perdure.Store, t *perdure.Task, calls []perdure.Call) ([]Turn, error) {
	n, err := nodeOf(t)
	if err != nil || n.Repl == nil {
		return nil, nil //nolint:nilerr // the plan of another program
	}
	p, ok := turn.Find(n.Repl.Profile)
	if !ok {
		return nil, nil
	}
	blocks, err := record.New(s).Blocks(ctx, t.Tree, t.ID)
	if err != nil {
		return nil, err
	}
	made, err := subCallsOf(ctx, s, t)
	if err != nil {
		return nil, err
	}
	var all []Turn
	for _, c := range replies(calls) {
		one := Turn{Turn: c.Position + 1, Reply: c.Response, Call: c.ID, InputTokens: c.InputTokens,
			OutputTokens: c.OutputTokens, CostUSD: c.CostUSD, Blocks: []TurnBlock{}}
		code := codeOf(&p, c.Response)
		for i := range blocks {
			if b := &blocks[i]; b.Turn == one.Turn && b.Index < len(code) {
				one.Blocks = append(one.Blocks, turnBlock(b, code[b.Index], made[[2]int{b.Turn, b.Index}]))
			}
		}
		all = append(all, one)
	}
	return all, nil
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

// subCallsOf counts the tasks of sub-calls by turn and block.
func subCallsOf(ctx context.Context, s *perdure.Store, t *perdure.Task) (map[[2]int]int, error) {
	count := make(map[[2]int]int)
	err := eachSubCall(ctx, s, perdure.TaskFilter{Tree: t.Tree, Parent: &t.ID}, func(_ perdure.TaskID, n *node) {
		count[[2]int{n.Call.Turn, n.Call.Block}]++
	})
	return count, err
}

// eachSubCall calls do for the tasks of sub-calls that a filter selects, page by page.
func eachSubCall(ctx context.Context, s *perdure.Store, f perdure.TaskFilter,
	do func(id perdure.TaskID, n *node)) error {
	const page = 1000
	f.Limit, f.Brief = page, true
	for {
		list, err := s.Tasks(ctx, f)
		if err != nil {
			return err
		}
		for i := range list {
			if n, err := nodeOf(&list[i]); err == nil && n.Call != nil {
				do(list[i].ID, n)
			}
		}
		if len(list) < page {
			return nil
		}
		f.After = list[len(list)-1].ID
	}
}

func turnBlock(b *record.Block, code string, made int) TurnBlock {
	out := TurnBlock{Code: code, SubCalls: made, StartedAt: b.StartedAt, EndedAt: b.EndedAt}
	r := b.Result
	if r == nil {
		return out
	}
	out.Output, out.OutputBytes = r.Output, r.OutputBytes
	if r.Failure != nil {
		out.Failure = r.Failure.Type + ": " + r.Failure.Message
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
