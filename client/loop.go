package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

// Loops lists loops, the newest first, at most limit of them; 0 means 100.
func (c *Client) Loops(ctx context.Context, limit int) ([]record.Loop, error) {
	v := url.Values{}
	setInt(v, "limit", int64(limit))
	var out struct {
		Loops []record.Loop `json:"loops"`
	}
	err := c.get(ctx, "list loops", "/v1/loops", v, &out)
	return out.Loops, err
}

// Loop tells where a loop stands.
func (c *Client) Loop(ctx context.Context, id perdure.TreeID) (record.Loop, error) {
	var l record.Loop
	err := c.get(ctx, "read loop", "/v1/loops/"+string(id), nil, &l)
	return l, err
}

// LoopDocument returns the document that a loop came in as which began elsewhere;
// CodeNotFound for others.
func (c *Client) LoopDocument(ctx context.Context, id perdure.TreeID) (json.RawMessage, error) {
	var doc json.RawMessage
	err := c.get(ctx, "read document of loop", "/v1/loops/"+string(id)+"/document", nil, &doc)
	return doc, err
}

// Iterations lists the iterations of a loop from a number on, in their order; at
// most limit, 0 means 1,000, which is also the most. Number 0 is the baseline.
func (c *Client) Iterations(ctx context.Context, id perdure.TreeID, from, limit int) ([]record.Iteration, error) {
	v := url.Values{}
	setInt(v, "from", int64(from))
	setInt(v, "limit", int64(limit))
	return c.iterations(ctx, id, "iterations", v)
}

// Briefs lists iterations as [Client.Iterations] does, with records that lack what
// is long: outputs of commands, words of agents, lists of files.
func (c *Client) Briefs(ctx context.Context, id perdure.TreeID, from, limit int) ([]record.Iteration, error) {
	v := url.Values{}
	setInt(v, "from", int64(from))
	setInt(v, "limit", int64(limit))
	return c.iterations(ctx, id, "briefs", v)
}

// Regressed lists the iterations below a number that made something worse, the
// latest first, with records as those of [Client.Briefs]; below 0 is all of them,
// limit as for [Client.Iterations].
func (c *Client) Regressed(ctx context.Context, id perdure.TreeID, below, limit int) ([]record.Iteration, error) {
	v := url.Values{}
	setInt(v, "below", int64(below))
	setInt(v, "limit", int64(limit))
	return c.iterations(ctx, id, "regressed", v)
}

func (c *Client) iterations(ctx context.Context, id perdure.TreeID, which string, v url.Values) ([]record.Iteration,
	error) {
	var out struct {
		Iterations []record.Iteration `json:"iterations"`
	}
	err := c.get(ctx, "list iterations", "/v1/loops/"+string(id)+"/"+which, v, &out)
	return out.Iterations, err
}

// LoopHistory sums up all iterations of a loop, which takes about as long for many
// as for few.
func (c *Client) LoopHistory(ctx context.Context, id perdure.TreeID, req record.HistoryRequest) (record.History,
	error) {
	v := url.Values{}
	setInt(v, "threshold", int64(req.Threshold))
	setInt(v, "each", int64(req.Each))
	setInt(v, "below", int64(req.Below))
	if req.Best {
		set(v, "best", "true")
	}
	var h record.History
	err := c.get(ctx, "sum up loop", "/v1/loops/"+string(id)+"/history", v, &h)
	return h, err
}

// Gates lists the gates of a loop or a run, answered and open, in their order.
func (c *Client) Gates(ctx context.Context, id perdure.TreeID) ([]perdure.Gate, error) {
	var out struct {
		Gates []perdure.Gate `json:"gates"`
	}
	err := c.get(ctx, "list gates", treePath(id, "/gates"), nil, &out)
	return out.Gates, err
}

// OpenGates lists the unanswered gates of all loops and runs.
func (c *Client) OpenGates(ctx context.Context) ([]perdure.Gate, error) {
	var out struct {
		Gates []perdure.Gate `json:"gates"`
	}
	err := c.get(ctx, "list gates", "/v1/gates", nil, &out)
	return out.Gates, err
}

// AskLoop sends a control request to the process that runs a loop, now or later.
func (c *Client) AskLoop(ctx context.Context, id perdure.TreeID, control record.Control) (record.Loop, error) {
	body := struct {
		Control record.Control `json:"wish"`
	}{control}
	var l record.Loop
	err := c.do(ctx, &request{op: "ask loop", method: http.MethodPost, path: "/v1/loops/" + string(id) + "/ask",
		body: &body, out: &l})
	return l, err
}

// ResumeLoop lets a loop go on, and changes its configuration before that. The
// answer tells what is different. Who runs it then is another question, see
// [Client.Resume]. A loop that has ended is CodeConflict.
func (c *Client) ResumeLoop(ctx context.Context, id perdure.TreeID, req record.ResumeRequest) (record.Resumed, error) {
	var out record.Resumed
	err := c.do(ctx, &request{op: "resume loop", method: http.MethodPost, path: "/v1/loops/" + string(id) + "/resume",
		body: &req, out: &out})
	return out, err
}

// AnswerGate answers an open gate of a loop or a run, which then goes on. One that
// was answered before is CodeConflict.
func (c *Client) AnswerGate(ctx context.Context, id perdure.TreeID, gate int, d perdure.GateDecision) (perdure.Gate,
	error) {
	body := struct {
		perdure.GateDecision
		Gate int `json:"gate"`
	}{d, gate}
	var g perdure.Gate
	err := c.do(ctx, &request{op: "answer gate", method: http.MethodPost, path: treePath(id, "/answer"), body: &body,
		out: &g})
	return g, err
}

// FalseAlarms lists the findings of a loop that a person marked as false alarms.
func (c *Client) FalseAlarms(ctx context.Context, id perdure.TreeID) ([]record.FalseAlarm, error) {
	var out struct {
		FalseAlarms []record.FalseAlarm `json:"false_alarms"`
	}
	err := c.get(ctx, "list false alarms", "/v1/loops/"+string(id)+"/false-alarms", nil, &out)
	return out.FalseAlarms, err
}

// MarkFalse marks findings of a loop as false alarms, which then do not alarm there
// again. It returns all that are marked, and how many are new.
func (c *Client) MarkFalse(ctx context.Context, id perdure.TreeID, findings []record.FalseAlarm) (
	all []record.FalseAlarm, fresh int, err error) {
	body := struct {
		Findings []record.FalseAlarm `json:"findings"`
	}{findings}
	var out struct {
		FalseAlarms []record.FalseAlarm `json:"false_alarms"`
		New         int                 `json:"new"`
	}
	err = c.do(ctx, &request{op: "mark false alarm", method: http.MethodPost,
		path: "/v1/loops/" + string(id) + "/false-alarms", body: &body, out: &out})
	return out.FalseAlarms, out.New, err
}
