package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/record"
)

// maxIterations is the most iterations in one answer.
const maxIterations = 1000

func (s *server) loops(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	limit := q.limit(defaultPage)
	if err := q.done(); err != nil {
		return err
	}
	list, err := s.records.Loops(r.Context(), limit)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Loops []record.Loop `json:"loops"`
	}{list})
}

func (s *server) loop(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	l, err := s.records.Loop(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, l)
}

// loopDocument is what a loop that began elsewhere came in as.
func (s *server) loopDocument(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	doc, err := s.records.Document(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, doc)
}

// loopID reads which loop a request without a query is about.
func loopID(r *http.Request) (perdure.TreeID, error) {
	if err := noQuery(r); err != nil {
		return "", err
	}
	return perdure.ParseTreeID(r.PathValue("id"))
}

// maxNumber is above the numbers of iterations.
const maxNumber = 1<<31 - 1

// iterations lists those from a number on.
func (s *server) iterations(w http.ResponseWriter, r *http.Request) error {
	return s.listIterations(w, r, "from", 0, s.records.Iterations)
}

// briefs lists those from a number on, without what is long of them.
func (s *server) briefs(w http.ResponseWriter, r *http.Request) error {
	return s.listIterations(w, r, "from", 0, s.records.Briefs)
}

// regressed lists those below a number that made something worse, the latest first.
func (s *server) regressed(w http.ResponseWriter, r *http.Request) error {
	return s.listIterations(w, r, "below", maxNumber, s.records.Regressed)
}

// listIterations answers with those that list finds at a place, which a parameter
// says.
func (s *server) listIterations(w http.ResponseWriter, r *http.Request, place string, missing int64,
	list func(ctx context.Context, tree perdure.TreeID, place, limit int) ([]record.Iteration, error)) error {
	q := readQuery(r)
	at, limit := q.number(place, 0, maxNumber, missing), q.limit(maxIterations)
	if err := q.done(); err != nil {
		return err
	}
	id, err := perdure.ParseTreeID(r.PathValue("id"))
	if err != nil {
		return err
	}
	found, err := list(r.Context(), id, int(at), limit)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Iterations []record.Iteration `json:"iterations"`
	}{found})
}

// loopHistory sums up a loop.
func (s *server) loopHistory(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	req := record.HistoryRequest{Threshold: int(q.number("threshold", 0, 100, 0)),
		Each:  int(q.number("each", 0, maxNumber, 0)),
		Below: int(q.number("below", 0, maxNumber, maxNumber)), Best: q.flag("best")}
	if err := q.done(); err != nil {
		return err
	}
	id, err := perdure.ParseTreeID(r.PathValue("id"))
	if err != nil {
		return err
	}
	h, err := s.records.LoopHistory(r.Context(), id, req)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, h)
}

// askLoop sends a control request to the process that runs a loop.
func (s *server) askLoop(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	var body struct {
		Control record.Control `json:"wish"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	if err := s.records.Ask(r.Context(), id, body.Control); err != nil {
		return err
	}
	l, err := s.records.Loop(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, l)
}

// resumeLoop lets a loop go on. The body, which may be missing, says what is to be
// different then.
func (s *server) resumeLoop(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	var body record.ResumeRequest
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	if s.cfg.ResumeLoop == nil {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "resume loop", Msg: "this server runs no loops"}
	}
	resumed, err := s.cfg.ResumeLoop(r.Context(), id, body)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, resumed)
}

// falseAlarms lists what a person marked.
func (s *server) falseAlarms(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	if _, err := s.records.Loop(r.Context(), id); err != nil {
		return err
	}
	return s.replyFalseAlarms(w, r, id, 0)
}

func (s *server) replyFalseAlarms(w http.ResponseWriter, r *http.Request, id perdure.TreeID, fresh int) error {
	list, err := s.records.FalseAlarms(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		FalseAlarms []record.FalseAlarm `json:"false_alarms"`
		New         int                 `json:"new"`
	}{list, fresh})
}

// markFalse marks findings as false alarms.
func (s *server) markFalse(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	var body struct {
		Findings []record.FalseAlarm `json:"findings"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	fresh, err := s.records.MarkFalse(r.Context(), id, body.Findings)
	if err != nil {
		return err
	}
	return s.replyFalseAlarms(w, r, id, fresh)
}

// whole refuses a change that would end or repeat a part of a loop without its engine,
// which then knew nothing of it.
func (s *server) whole(ctx context.Context, op string, id perdure.TreeID) error {
	tree, err := s.store.Tree(ctx, id)
	if err != nil || tree.Kind != perdure.KindLoop || tree.State.Terminal() {
		return nil //nolint:nilerr // who does it says what is wrong
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: op,
		Msg:  fmt.Sprintf("%q is a loop, which ends and repeats its parts by itself", id),
		Hint: "`perdure loop abort " + string(id) + "` ends it, `perdure loop pause` stops it for a while"}
}

// wholeOf is whole for a task of a tree.
func (s *server) wholeOf(ctx context.Context, op string, id perdure.TaskID) error {
	task, err := s.store.Task(ctx, id)
	if err != nil {
		return err
	}
	return s.whole(ctx, op, task.Tree)
}
