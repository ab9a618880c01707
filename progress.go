package perdure

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/storage/eta"
	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/text/clip"
)

// Progress is the progress of a tree. It is read from counters, at a cost that does not
// grow with the tree.
type Progress struct {
	Tree    TreeID `json:"tree_id"`
	State   State  `json:"state"`
	Partial bool   `json:"partial,omitempty"`
	// Interrupted is set if the process that alone can run the tree died, or the last
	// processes that ran its tasks did. Another one can continue it.
	Interrupted bool  `json:"interrupted,omitempty"`
	Total       int64 `json:"total"`
	// Completed … Cancelled count tasks by state; tasks of a dead process are
	// counted as queued.
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Running   int64 `json:"running"`
	Waiting   int64 `json:"waiting"`
	Queued    int64 `json:"queued"`
	Cancelled int64 `json:"cancelled"`
	// Planned counts the tasks that exist or are planned; nil while a task may create an
	// unknown number of tasks.
	Planned *int64 `json:"planned"`
	// Percent is 0 to 100, of the planned calls, or of the tasks if none are planned. It
	// is 0 while Planned is nil.
	Percent float64 `json:"percent"`
	// ETASeconds is nil before the first task completed, and while Planned is nil.
	ETASeconds      *float64 `json:"eta_seconds"`
	MeanTaskSeconds float64  `json:"mean_task_seconds"`
	P50TaskSeconds  float64  `json:"p50_task_seconds"`
	P95TaskSeconds  float64  `json:"p95_task_seconds"`
	Usage           Usage    `json:"usage"`
	// Costs is the usage by depth and model.
	Costs []CostLine `json:"costs"`
	// Limits is the usage of the limits that are set.
	Limits []LimitUse `json:"limits"`
	// ElapsedSeconds counts from the creation to the end, or until now.
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	// WorkedSeconds is the part of it in which tasks were running.
	WorkedSeconds float64   `json:"worked_seconds"`
	CreatedAt     time.Time `json:"created_at"`
}

// ActiveTask is a running task in a status.
type ActiveTask struct {
	Task TaskID `json:"task_id"`
	// Prompt is shortened to 60 characters.
	Prompt string    `json:"prompt"`
	Since  time.Time `json:"since"`
}

// Progress returns the progress of a tree.
func (s *Store) Progress(ctx context.Context, id TreeID) (Progress, error) {
	p, _, err := s.progress(ctx, id)
	return p, err
}

// progress also returns how many of the queued tasks are leased to dead sessions.
func (s *Store) progress(ctx context.Context, id TreeID) (p Progress, lost int64, err error) {
	const op = "read progress"
	var tree, createdAt, limitsFrom, owner int64
	if err := s.db.QueryRow(ctx, sqlTreeKey, []any{string(id)}, &tree, &createdAt, &limitsFrom, &owner); err != nil {
		return p, 0, wrap(op, orNotFound(err, noTree(op, id)))
	}
	st, err := loadStat(ctx, s.db.QueryRow, tree)
	if err != nil {
		return p, 0, wrap(op, err)
	}
	now, err := s.db.Now(ctx)
	if err != nil {
		return p, 0, wrap(op, err)
	}
	var running eta.Running
	for _, h := range st.holds {
		alive, err := s.alive(ctx, h.session)
		if err != nil {
			return p, 0, err
		}
		if !alive {
			lost += h.n
			continue
		}
		if err := s.addRunning(ctx, &running, h.session, tree, now); err != nil {
			return p, 0, wrap(op, err)
		}
	}
	p = st.progress(now, createdAt, limitsFrom, lost)
	st.forecast(&p, now, running)
	p.Tree = id
	if p.Interrupted = !p.State.Terminal() && p.Running == 0 && lost > 0; p.Interrupted || owner == 0 {
		return p, lost, nil
	}
	if p.Running == 0 && !p.State.Terminal() {
		alive, err := s.alive(ctx, owner)
		p.Interrupted = err == nil && !alive
	}
	return p, lost, nil
}

const sqlTreeKey = `SELECT id, created_at, COALESCE(reopened_at, created_at), owner FROM tree WHERE name = $1`

func (st *treeStat) progress(now, createdAt, limitsFrom, lost int64) Progress {
	c := &st.counts
	p := Progress{State: treeStateOf(st.state, st.partial), Total: c[0], Queued: c[stQueued] + lost,
		Running: c[stRunning] - lost, Waiting: c[stWaiting], Completed: c[stCompleted], Failed: c[stFailed],
		Cancelled: c[stCancelled], Usage: st.used.usage(), Costs: st.costLines(), CreatedAt: micros(createdAt)}
	p.Partial = p.State == Partial
	end := now
	if st.endedAt != nil {
		end = *st.endedAt
	}
	p.ElapsedSeconds = float64(max(end-createdAt, 0)) / 1e6
	p.Limits = st.limitUses(max(end-limitsFrom, 0))
	if p.Completed > 0 {
		p.MeanTaskSeconds = float64(st.timing.Sum) / float64(p.Completed) / 1e6
	}
	p.P50TaskSeconds = st.timing.Quantile(0.50).Seconds()
	p.P95TaskSeconds = st.timing.Quantile(0.95).Seconds()
	return p
}

// sqlRunningSince reads as many rows as tasks run.
const sqlRunningSince = `SELECT COUNT(*), CAST(COALESCE(SUM($3 - claimed_at), 0) AS BIGINT),
	COALESCE(MIN($3 - claimed_at), 0) FROM task_hot WHERE session = $1 AND tree = $2`

// addRunning adds the tasks of a tree that a session runs.
func (s *Store) addRunning(ctx context.Context, r *eta.Running, session, tree, now int64) error {
	var n, elapsed, newest int64
	err := s.db.QueryRow(ctx, sqlRunningSince, []any{session, tree, now}, &n, &elapsed, &newest)
	if err != nil || n == 0 {
		return err
	}
	if r.Tasks == 0 || newest < r.Newest {
		r.Newest = newest
	}
	r.Tasks, r.Elapsed = r.Tasks+n, r.Elapsed+elapsed
	return nil
}

// unfinishedPercent is the most that a tree that is not terminal shows.
const unfinishedPercent = 99

// forecast sets what follows from the planned work.
func (st *treeStat) forecast(p *Progress, now int64, running eta.Running) {
	t := st.time()
	if p.State.Terminal() || running.Tasks > 0 {
		t.Tick(min(now, valueOr(st.endedAt, now)), running.Tasks)
	}
	p.WorkedSeconds = min(float64(t.Busy)/1e6, p.ElapsedSeconds)
	if t.Open == 0 || p.State.Terminal() {
		p.Planned = new(max(t.Tasks(), p.Total))
		if ended := p.Completed + p.Failed + p.Cancelled; ended > 0 {
			p.Percent = 100 * t.Share() * float64(p.Completed) / float64(ended)
		}
	}
	switch us, known := t.Remaining(running); {
	case p.State == Completed:
		p.Percent, p.Planned, p.ETASeconds = 100, &p.Total, new(0.0)
	case p.State.Terminal():
		p.ETASeconds = new(0.0)
	default:
		p.Percent = min(p.Percent, unfinishedPercent)
		if known {
			p.ETASeconds = new(us / 1e6)
		}
	}
}

// valueOr returns what a column that can be NULL holds, or a default.
func valueOr(n *int64, none int64) int64 {
	if n == nil {
		return none
	}
	return *n
}

const sqlActive = `SELECT t.id, t.prompt, COALESCE(h.claimed_at, 0) FROM task_hot h JOIN task t ON t.id = h.id
	WHERE h.session = $1 AND h.tree = $2 ORDER BY h.rank LIMIT $3 + 0`

// activePromptRunes bounds the prompt of an [ActiveTask].
const activePromptRunes = 60

// Active lists tasks of a tree that living sessions run, at most limit; 0 means
// 100, the most is 1,000.
func (s *Store) Active(ctx context.Context, id TreeID, limit int) ([]ActiveTask, error) {
	const op = "list active tasks"
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	st, err := loadStat(ctx, s.db.QueryRow, tree.key)
	if err != nil {
		return nil, wrap(op, ignoreNoRows(err))
	}
	var active []ActiveTask
	limit = pageLimit(limit)
	for _, h := range st.holds {
		if alive, err := s.alive(ctx, h.session); err != nil || !alive {
			continue
		}
		more, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (a ActiveTask, err error) {
			var since int64
			err = scan((*int64)(&a.Task), &a.Prompt, &since)
			a.Since = micros(since)
			return a, err
		}, sqlActive, h.session, tree.key, limit-len(active))
		if err != nil {
			return nil, wrap(op, err)
		}
		active = append(active, more...)
	}
	for i := range active {
		text, err := s.load(ctx, tree.key, active[i].Prompt)
		if err != nil {
			return nil, err
		}
		active[i].Prompt = clip.Runes(text, activePromptRunes)
	}
	return active, nil
}

// RecoverReport is the state of a tree when it is resumed.
type RecoverReport struct {
	Tree  TreeID `json:"tree_id"`
	State State  `json:"state"`
	// Done tasks keep their results; Requeued were lost by a dead process and
	// are claimable again; Pending wait to be claimed or for children; GivenUp
	// failed permanently or were cancelled.
	Done     int64 `json:"done"`
	Requeued int64 `json:"requeued"`
	Pending  int64 `json:"pending"`
	GivenUp  int64 `json:"given_up"`
	// Running are tasks of living processes.
	Running int64 `json:"running"`
	// Reopened are tasks that [Store.Reopen] queued again, those above missing parts
	// included; they are among the pending ones.
	Reopened int64 `json:"reopened,omitempty"`
}

// Recover returns the state of a tree, and makes owner, if set, the owner of a tree whose
// owner is dead. It fails with CodeConflict for a tree that a living session owns, and
// for one whose placement this process does not satisfy. It changes no task: lost tasks
// are claimable already.
func (s *Store) Recover(ctx context.Context, id TreeID, owner *Session) (RecoverReport, error) {
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return RecoverReport{}, err
	}
	if err := s.adopt(ctx, &tree, owner); err != nil {
		return RecoverReport{}, err
	}
	p, lost, err := s.progress(ctx, id)
	if err != nil {
		return RecoverReport{}, err
	}
	return p.recovered(lost), nil
}

func (p *Progress) recovered(lost int64) RecoverReport {
	return RecoverReport{Tree: p.Tree, State: p.State, Done: p.Completed, Requeued: lost,
		Pending: p.Queued - lost + p.Waiting, GivenUp: p.Failed + p.Cancelled, Running: p.Running}
}

// ownedElsewhere returns an error if another living session owns the tree.
func (s *Store) ownedElsewhere(ctx context.Context, op string, tree *Tree, owner *Session) error {
	if tree.owner == 0 || owner != nil && tree.owner == owner.key {
		return nil
	}
	if alive, err := s.alive(ctx, tree.owner); err != nil || !alive {
		return err
	}
	return &Error{Code: CodeConflict, Op: op, Msg: "tree \"" + string(tree.ID) + "\" is being run by another process",
		Hint: "`perdure status " + string(tree.ID) + "` shows its progress"}
}

const sqlSetOwner = `UPDATE tree SET owner = $2 WHERE id = $1 AND owner = $3`

func (s *Store) adopt(ctx context.Context, tree *Tree, owner *Session) error {
	const op = "resume tree"
	if err := s.ownedElsewhere(ctx, op, tree, owner); err != nil {
		return err
	}
	if owner == nil || tree.owner == owner.key || tree.State.Terminal() {
		return nil
	}
	if lack := s.cfg.Placement.lacks(&tree.Placement); lack != "" {
		return conflictf(op, "tree %q requires %s, which this process does not offer", tree.ID, lack)
	}
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		n, err := b.tx.Exec(ctx, sqlSetOwner, tree.key, owner.key, tree.owner)
		if err == nil && n == 0 {
			return conflictf(op, "another process resumed tree %q just now", tree.ID)
		}
		return err
	}))
	if err == nil {
		tree.owner = owner.key
		s.remember(*tree)
	}
	return err
}
