package record

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/failpoint"
)

// briefForm is the version of the briefs that this program writes. Raise it when they
// change: the briefs of older loops are then rewritten.
const briefForm = 2

// short is the part of an iteration's record that its brief keeps, with the same
// keys: no output of commands, no text of the agent, no lists of files.
type short struct {
	Timestamp json.RawMessage `json:"timestamp,omitempty"`
	After     string          `json:"snapshot_path,omitempty"`
	Changed   int             `json:"files_changed,omitempty"`
	Check     struct {
		Exit       int             `json:"exit"`
		Passed     bool            `json:"passed"`
		Weak       bool            `json:"weak_evidence,omitempty"`
		Skipped    bool            `json:"skipped,omitempty"`
		TimedOut   bool            `json:"timed_out,omitempty"`
		Counts     json.RawMessage `json:"counts,omitempty"`
		Incomplete string          `json:"incomplete,omitempty"`
		TookMS     int64           `json:"took_ms"`
	} `json:"test_results"`
	Metrics map[string]json.RawMessage `json:"metrics,omitempty"`
	Diff    *struct {
		Before json.RawMessage `json:"before"`
		Now    json.RawMessage `json:"now"`
	} `json:"baseline_diff,omitempty"`
	Regressions []regression      `json:"regressions,omitempty"`
	Imported    bool              `json:"imported,omitempty"`
	Accepted    bool              `json:"accepted,omitempty"`
	Recoveries  []json.RawMessage `json:"recovery_history,omitempty"`
	Agent       string            `json:"agent,omitempty"`
	AgentError  string            `json:"agent_error,omitempty"`
	Retried     []json.RawMessage `json:"retried_errors,omitempty"`
	// Risky keeps only the number of risky actions.
	Risky    []struct{}      `json:"risky_actions,omitempty"`
	Sight    json.RawMessage `json:"sight,omitempty"`
	Denied   int             `json:"denied,omitempty"`
	Input    int64           `json:"input_tokens,omitempty"`
	Output   int64           `json:"output_tokens,omitempty"`
	CostUSD  *float64        `json:"cost_usd,omitempty"`
	Usage    string          `json:"usage_source,omitempty"`
	Percent  int             `json:"context_percent,omitempty"`
	Context  string          `json:"context_source,omitempty"`
	Sealed   *seal           `json:"sealed,omitempty"`
	Times    times           `json:"times"`
	Warnings []string        `json:"warnings,omitempty"`
}

type regression struct {
	Type     string   `json:"regression_type"`
	Severity string   `json:"severity"`
	Text     string   `json:"text"`
	Tests    []string `json:"tests,omitempty"`
	Files    []string `json:"files,omitempty"`
	// Fingerprints identify it where a person marks it as a false alarm.
	Fingerprints []string `json:"fingerprints,omitempty"`
}

type seal struct {
	State  string `json:"state"`
	Why    string `json:"why,omitempty"`
	Runs   int    `json:"runs"`
	Copied int    `json:"files_copied"`
	CopyMS int64  `json:"copy_ms"`
	TookMS int64  `json:"took_ms"`
}

type times struct {
	Agent    int64 `json:"agent_ms"`
	Check    int64 `json:"check_ms"`
	Snapshot int64 `json:"snapshot_ms"`
	Hooks    int64 `json:"hooks_ms"`
	Metrics  int64 `json:"metrics_ms,omitempty"`
	Sealed   int64 `json:"sealed_ms,omitempty"`
	Engine   int64 `json:"engine_ms"`
}

// unreadable is the data of the brief of a record that cannot be read.
const unreadable = `"unreadable"`

// shorten reads the record of an iteration. One that cannot be read becomes empty.
func shorten(it *Iteration) (s short, data string) {
	if err := json.Unmarshal(it.Data, &s); err != nil {
		return short{}, unreadable
	}
	// The names of files and of blobs are for the engine.
	delete(s.Metrics, "coverage_profile")
	if loss := (map[string]json.RawMessage{}); json.Unmarshal(s.Metrics["coverage_loss"], &loss) == nil {
		delete(loss, "files")
		if raw, err := json.Marshal(loss); err == nil {
			s.Metrics["coverage_loss"] = raw
		}
	}
	raw, err := json.Marshal(&s)
	if err != nil {
		return short{}, unreadable
	}
	return s, string(raw)
}

// eligible reports whether a loop may end with an iteration in the workspace: the
// iteration is over, was not reverted, and has no regression or was accepted.
func (s *short) eligible(it *Iteration) bool {
	return it.Number > 0 && (it.Status == IterationKept || it.Status == IterationFailed) && it.EndedAt != nil &&
		it.Quality != nil &&
		s.After != "" && !s.Imported && (len(s.Regressions) == 0 || s.Accepted)
}

// kinds counts the regressions by type and severity, as JSON.
func (s *short) kinds() (string, error) {
	if len(s.Regressions) == 0 {
		return "", nil
	}
	var list []Tally
	for _, r := range s.Regressions {
		list = tallied(list, Tally{Type: r.Type, Severity: r.Severity, Count: 1})
	}
	raw, err := json.Marshal(list)
	return string(raw), err
}

const (
	sqlPutBrief = `INSERT INTO brief (tree, number, task, status, quality, started_at, ended_at, eligible, passed,
		regressions, recoveries,
			agent_errors, warnings, sealed, work_ms, added_ms, kinds, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
		ON CONFLICT (tree, number) DO UPDATE SET task = excluded.task, status = excluded.status, quality = excluded.quality,
		ended_at = excluded.ended_at,
			eligible = excluded.eligible, passed = excluded.passed, regressions = excluded.regressions,
			recoveries = excluded.recoveries,
			agent_errors = excluded.agent_errors, warnings = excluded.warnings, sealed = excluded.sealed,
			work_ms = excluded.work_ms, added_ms = excluded.added_ms,
			kinds = excluded.kinds, data = excluded.data`
	briefColumns = `b.number, b.task, b.status, b.quality, b.data, b.started_at, b.ended_at`
	sqlBriefs    = `SELECT ` + briefColumns + ` FROM tree t JOIN brief b ON b.tree = t.id
		WHERE t.name = $1 AND b.number >= $2 ORDER BY b.number LIMIT $3 + 0`
	sqlRegressed = `SELECT ` + briefColumns + ` FROM tree t JOIN brief b ON b.tree = t.id
		WHERE t.name = $1 AND b.number < $2 AND b.regressions > 0 ORDER BY b.number DESC LIMIT $3 + 0`
	// Of the eligible ones whose check passed or failed: the best one, and the latest
	// one of at least a quality.
	sqlHighest = `SELECT ` + briefColumns + ` FROM brief b
		WHERE b.tree = $1 AND b.eligible = 1 AND b.passed = $2 ORDER BY b.quality DESC, b.number LIMIT 1`
	sqlLatest = `SELECT ` + briefColumns + ` FROM brief b
		WHERE b.tree = $1 AND b.eligible = 1 AND b.passed = $2 AND b.quality >= $3 ORDER BY b.number DESC LIMIT 1`
)

// saveBrief writes the brief of an iteration in the transaction that writes the
// iteration.
func saveBrief(ctx context.Context, tx *perdure.WriteTx, key int64, it *Iteration) error {
	s, data := shorten(it)
	kinds, err := s.kinds()
	if err != nil {
		return err
	}
	t := &s.Times
	_, err = tx.Exec(ctx, sqlPutBrief, key, it.Number, int64(it.Task), string(it.Status), it.Quality,
		it.StartedAt.UnixMicro(), column(it.EndedAt),
		digit(s.eligible(it)), digit(s.Check.Passed), len(s.Regressions), len(s.Recoveries),
		digit(s.AgentError != "")+len(s.Retried),
		len(s.Warnings), digit(s.Sealed != nil),
		t.Agent+t.Check+t.Metrics, t.Snapshot+t.Hooks+t.Engine, kinds, data)
	return err
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Briefs lists iterations from a number on, in their order, at most limit. Their
// records are short: without outputs, text of agents and lists of files.
func (r *Records) Briefs(ctx context.Context, tree perdure.TreeID, from, limit int) ([]Iteration, error) {
	if err := r.fill(ctx, tree); err != nil {
		return nil, err
	}
	return iterations(ctx, r.store.Reader(), sqlBriefs, string(tree), from, limit)
}

// Regressed lists the iterations below a number that have regressions, the latest
// first, at most limit, with records as those of [Records.Briefs].
func (r *Records) Regressed(ctx context.Context, tree perdure.TreeID, below, limit int) ([]Iteration, error) {
	if err := r.fill(ctx, tree); err != nil {
		return nil, err
	}
	return iterations(ctx, r.store.Reader(), sqlRegressed, string(tree), below, limit)
}

// Candidates lists, in their order, the iterations from which the best one is chosen:
// of those that a loop may end with, once where the check passed and once where it
// failed, the first one with the highest quality and the latest one with at least the
// threshold. Their records are as those of [Records.Briefs].
func (r *Records) Candidates(ctx context.Context, tree perdure.TreeID, threshold int) ([]Iteration, error) {
	if err := r.fill(ctx, tree); err != nil {
		return nil, err
	}
	var list []Iteration
	err := r.store.ReadTx(ctx, func(ctx context.Context, tx *perdure.ReadTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err == nil {
			list, err = candidates(ctx, tx, key, threshold)
		}
		return err
	})
	return list, err
}

func candidates(ctx context.Context, tx *perdure.ReadTx, key int64, threshold int) ([]Iteration, error) {
	all := []Iteration{}
	add := func(row perdure.Row) error {
		it, err := scanIteration(row)
		all = append(all, it)
		return err
	}
	for _, passed := range []int{0, 1} {
		if err := perdure.EachRow(ctx, tx, add, sqlHighest, key, passed); err != nil {
			return nil, err
		}
		if err := perdure.EachRow(ctx, tx, add, sqlLatest, key, passed, threshold); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b Iteration) int { return cmp.Compare(a.Number, b.Number) })
	return slices.CompactFunc(all, func(a, b Iteration) bool { return a.Number == b.Number }), nil
}

const sqlBriefForm = `SELECT l.briefs FROM tree t JOIN loop l ON l.tree = t.id WHERE t.name = $1`

const sqlBriefed = `UPDATE loop SET briefs = $2 WHERE tree = $1`

// rewriteBriefs writes the briefs of iterations anew. The digests of iterations that were
// changed outside of perdure stay as they are, so that the changes can be found.
func rewriteBriefs(ctx context.Context, tx *perdure.WriteTx, key int64, list []Iteration) error {
	numbers := make([]int, len(list))
	for i := range list {
		numbers[i] = list[i].Number
	}
	logged, err := tx.RowsLogged(ctx, key, perdure.RowIteration, numbers)
	if err != nil {
		return err
	}
	for i := range list {
		if err := saveBrief(ctx, tx, key, &list[i]); err != nil {
			return err
		}
	}
	for _, n := range logged {
		tx.LogRow(key, perdure.RowIteration, n)
	}
	return nil
}

// fill writes the briefs of a loop whose program wrote none, or older ones.
func (r *Records) fill(ctx context.Context, tree perdure.TreeID) error {
	const op = "read loop"
	form := 0
	err := r.store.Reader().QueryRow(ctx, sqlBriefForm, string(tree)).Scan(&form)
	if errors.Is(err, sql.ErrNoRows) {
		return refuse(perdure.CodeNotFound, op, "", "tree %q is not a loop", tree)
	}
	if err != nil {
		return wrap(op, err)
	}
	const page = 200 // other writers wait for one page at most
	for from := 0; form < briefForm; failpoint.Hit("loop.briefs_filled") {
		err := r.write(ctx, tree, func(ctx context.Context, tx *perdure.WriteTx, key int64) error {
			list, err := iterations(ctx, tx, sqlIterations, string(tree), from, page)
			if err != nil {
				return err
			}
			if err := rewriteBriefs(ctx, tx, key, list); err != nil {
				return err
			}
			if len(list) == page {
				from = list[page-1].Number + 1
				return nil
			}
			_, err = tx.Exec(ctx, sqlBriefed, key, briefForm)
			form = briefForm
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
