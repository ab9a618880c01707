package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

func loopPath(id perdure.TreeID, rest string) string {
	return "/v1/loops/" + url.PathEscape(string(id)) + rest
}

// Loops lists loops, the newest first, at most limit of them; 0 means 100.
func (c *Client) Loops(ctx context.Context, limit int) ([]record.Loop, error) {
	out, err := get[struct{ Loops []record.Loop }](ctx, c, "list loops", "/v1/loops", query("limit", limit))
	return out.Loops, err
}

// Loop returns the current state of a loop.
func (c *Client) Loop(ctx context.Context, id perdure.TreeID) (record.Loop, error) {
	return get[record.Loop](ctx, c, "read loop", loopPath(id, ""), nil)
}

// LoopDocument returns the document that a loop came in as which began elsewhere;
// CodeNotFound for others.
func (c *Client) LoopDocument(ctx context.Context, id perdure.TreeID) (json.RawMessage, error) {
	return get[json.RawMessage](ctx, c, "read document of loop", loopPath(id, "/document"), nil)
}

// Iterations lists the iterations of a loop from a number on, in their order; at
// most limit, 0 means 1,000, which is also the most. Number 0 is the baseline.
func (c *Client) Iterations(ctx context.Context, id perdure.TreeID, from, limit int) ([]record.Iteration, error) {
	return c.iterations(ctx, id, "/iterations", query("from", from, "limit", limit))
}

// Briefs lists iterations as [Client.Iterations] does, with records that lack what
// is long: outputs of commands, words of agents, lists of files.
func (c *Client) Briefs(ctx context.Context, id perdure.TreeID, from, limit int) ([]record.Iteration, error) {
	return c.iterations(ctx, id, "/briefs", query("from", from, "limit", limit))
}

// Regressed lists the iterations below a number that made something worse, the
// latest first, with records as those of [Client.Briefs]; below 0 is all of them,
// limit as for [Client.Iterations].
func (c *Client) Regressed(ctx context.Context, id perdure.TreeID, below, limit int) ([]record.Iteration, error) {
	return c.iterations(ctx, id, "/regressed", query("below", below, "limit", limit))
}

func (c *Client) iterations(ctx context.Context, id perdure.TreeID, list string, v url.Values) ([]record.Iteration,
	error) {
	out, err := get[struct{ Iterations []record.Iteration }](ctx, c, "list iterations", loopPath(id, list), v)
	return out.Iterations, err
}

// LoopHistory sums up all iterations of a loop, which takes about as long for many
// as for few.
func (c *Client) LoopHistory(ctx context.Context, id perdure.TreeID, req record.HistoryRequest) (record.History,
	error) {
	return get[record.History](ctx, c, "sum up loop", loopPath(id, "/history"),
		query("threshold", req.Threshold, "each", req.Each, "below", req.Below, "best", req.Best))
}

// Gates lists the gates of a loop or a run, answered and open, in their order.
func (c *Client) Gates(ctx context.Context, id perdure.TreeID) ([]perdure.Gate, error) {
	out, err := get[struct{ Gates []perdure.Gate }](ctx, c, "list gates", treePath(id, "/gates"), nil)
	return out.Gates, err
}

// OpenGates lists the unanswered gates of all loops and runs.
func (c *Client) OpenGates(ctx context.Context) ([]perdure.Gate, error) {
	out, err := get[struct{ Gates []perdure.Gate }](ctx, c, "list gates", "/v1/gates", nil)
	return out.Gates, err
}

// AskLoop sends a control request to the process that runs a loop, now or later.
func (c *Client) AskLoop(ctx context.Context, id perdure.TreeID, control record.Control) (record.Loop, error) {
	body := struct {
		Control record.Control `json:"wish"`
	}{control}
	return post[record.Loop](ctx, c, "ask loop", loopPath(id, "/ask"), &body)
}

// ResumeLoop resumes a loop, after it has changed the configuration. The answer
// lists the changes. It does not choose the process that runs the loop, see
// [Client.Resume]. A loop that has ended is CodeConflict.
func (c *Client) ResumeLoop(ctx context.Context, id perdure.TreeID, req record.ResumeRequest) (record.Resumed, error) {
	return post[record.Resumed](ctx, c, "resume loop", loopPath(id, "/resume"), &req)
}

// AnswerGate answers an open gate of a loop or a run, which then continues. One that
// was answered before is CodeConflict, and so is one whose [perdure.Approver] does not
// allow this process to answer.
func (c *Client) AnswerGate(ctx context.Context, id perdure.TreeID, gate int, d perdure.GateDecision) (perdure.Gate,
	error) {
	body := struct {
		perdure.GateDecision
		Gate int `json:"gate"`
	}{d, gate}
	return post[perdure.Gate](ctx, c, "answer gate", treePath(id, "/answer"), &body)
}

// FalseAlarms are the findings of a loop that a person marked as false alarms.
type FalseAlarms struct {
	FalseAlarms []record.FalseAlarm `json:"false_alarms"`
	// New is how many of them the request marked.
	New int `json:"new"`
}

// FalseAlarms lists the findings of a loop that a person marked as false alarms.
func (c *Client) FalseAlarms(ctx context.Context, id perdure.TreeID) ([]record.FalseAlarm, error) {
	out, err := get[FalseAlarms](ctx, c, "list false alarms", loopPath(id, "/false-alarms"), nil)
	return out.FalseAlarms, err
}

// MarkFalse marks findings of a loop as false alarms, which then do not alarm there
// again. It returns all that are marked, and how many are new.
func (c *Client) MarkFalse(ctx context.Context, id perdure.TreeID, findings []record.FalseAlarm) (
	all []record.FalseAlarm, fresh int, err error) {
	body := struct {
		Findings []record.FalseAlarm `json:"findings"`
	}{findings}
	out, err := post[FalseAlarms](ctx, c, "mark false alarm", loopPath(id, "/false-alarms"), &body)
	return out.FalseAlarms, out.New, err
}
