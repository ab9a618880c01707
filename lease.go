package perdure

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Lease is the right to run one task. Task is the task as it was when it was claimed.
// Methods that change the task check the fencing token of the claim; after another session
// took the task over, or the task was cancelled, they fail with CodeLeaseLost and change
// nothing.
//
// Methods may be called from several goroutines, but not during or after the one that
// ends the lease: Complete, Fail, Release, Wait or Spawn.
type Lease struct {
	Task Task
	Tree Tree

	s       *Store
	session *Session

	fence, parent, flags, claimedAt, replays int64
	// timedFrom is when the first call began, if the lease began before a task of the tree completed, 0 for
	// others: until a server answered once, one request goes alone, and the others wait for it. Only
	// the writer's goroutine uses it, as early, which is set until then.
	timedFrom int64
	early     bool

	calls     atomic.Bool    // calls may be open
	vars      atomic.Bool    // the lease changed variables
	positions atomic.Int64   // calls were begun at smaller positions
	replayed  map[int64]bool // calls of earlier attempts that answered, for the writer
}

// ClaimRequest selects the tasks to claim.
type ClaimRequest struct {
	// Max is the largest number of tasks to claim, at least 1.
	Max int
	// Trees restricts the claim to these trees; nil means all.
	Trees []TreeID
	// Allow, when set, reports whether tasks of a tree may be claimed. It is called for
	// trees whose placement this process satisfies, again after a tree was reopened, by
	// the goroutine that claims, and has to be quick.
	Allow func(Tree) bool
}

// Claim leases tasks that are ready: those of dead sessions first, then by priority,
// deeper before shallower, older before newer; trees take turns. It returns when the claim
// is durable, and at once, without an error, if there is no task to claim. Only one
// goroutine of a process should claim, so that the session does not compete with itself.
//
// While trees in which this process made tasks ready have some, Claim reads all other
// trees, and searches for dead sessions, only every [Config.PollInterval].
func (ss *Session) Claim(ctx context.Context, req ClaimRequest) ([]*Lease, error) {
	if req.Max < 1 {
		return nil, invalidf("claim task", "max is %d, at least 1 is needed", req.Max)
	}
	if leases, err := ss.claimKnown(ctx, &req); err != nil || len(leases) > 0 {
		return leases, err
	}
	dead, err := ss.s.deadSessions(ctx)
	if err != nil {
		return nil, err
	}
	var leases []*Lease
	for _, from := range append(dead, 0) {
		got, err := ss.claimFrom(ctx, from, &req, req.Max-len(leases))
		leases = append(leases, got...)
		if err != nil || len(leases) >= req.Max {
			return leases, err
		}
	}
	return leases, nil
}

// claimKnown claims from the trees in which this process made tasks ready. It reads
// nothing from the database before the claim.
func (ss *Session) claimKnown(ctx context.Context, req *ClaimRequest) ([]*Lease, error) {
	since := time.Since(ss.s.opened).Microseconds()
	if last := ss.s.polled.Load(); last == 0 || since-last >= ss.s.cfg.PollInterval.Microseconds() {
		ss.s.polled.Store(since)
		return nil, nil
	}
	return ss.claimTrees(ctx, ss.s.known.list(), 0, req, req.Max)
}

// candidatePage is the number of trees that one query returns.
const candidatePage = 64

const (
	sqlReadyTrees = `WITH RECURSIVE found(tree) AS (
			SELECT (SELECT tree FROM task_hot WHERE ready_at IS NOT NULL AND tree > $1 ORDER BY tree LIMIT 1)
			UNION ALL SELECT (SELECT tree FROM task_hot WHERE ready_at IS NOT NULL AND tree > found.tree ORDER BY tree LIMIT 1)
			FROM found WHERE found.tree IS NOT NULL)
		SELECT tree FROM found WHERE tree IS NOT NULL LIMIT $2 + 0`
	sqlLostTrees = `WITH RECURSIVE found(tree) AS (
			SELECT (SELECT tree FROM task_hot WHERE session = $2 AND tree > $1 ORDER BY tree LIMIT 1)
			UNION ALL SELECT (SELECT tree FROM task_hot WHERE session = $2 AND tree > found.tree ORDER BY tree LIMIT 1)
			FROM found WHERE found.tree IS NOT NULL)
		SELECT tree FROM found WHERE tree IS NOT NULL LIMIT $3 + 0`
)

// candidates lists trees after one that have ready tasks (from = 0) or tasks of a dead
// session.
func (s *Store) candidates(ctx context.Context, from, after int64) ([]int64, error) {
	q, args := sqlReadyTrees, []any{after, candidatePage}
	if from != 0 {
		q, args = sqlLostTrees, []any{after, from, candidatePage}
	}
	trees, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[int64], q, args...)
	return trees, wrap("claim task", err)
}

// claimFrom claims the tasks of a dead session, or ready tasks (from = 0).
func (ss *Session) claimFrom(ctx context.Context, from int64, req *ClaimRequest, limit int) ([]*Lease, error) {
	if req.Trees != nil {
		keys, err := ss.s.treeKeys(ctx, req.Trees, from)
		if err != nil {
			return nil, err
		}
		return ss.claimTrees(ctx, keys, from, req, limit)
	}
	var leases []*Lease
	for after := int64(0); ; {
		trees, err := ss.s.candidates(ctx, from, after)
		if err != nil || len(trees) == 0 {
			return leases, err
		}
		after = trees[len(trees)-1]
		got, err := ss.claimTrees(ctx, trees, from, req, limit-len(leases))
		leases = append(leases, got...)
		if err != nil || len(leases) >= limit || len(trees) < candidatePage {
			return leases, err
		}
	}
}

// claimTrees claims from each of the trees, beginning after the tree of the last claim, so
// that trees take turns.
func (ss *Session) claimTrees(ctx context.Context, trees []int64, from int64, req *ClaimRequest, limit int,
) ([]*Lease, error) {
	slices.Sort(trees)
	at, _ := slices.BinarySearch(trees, ss.turn.Load()+1)
	var leases []*Lease
	for _, tree := range slices.Concat(trees[at:], trees[:at]) {
		got, err := ss.claimTree(ctx, tree, from, req, limit-len(leases))
		if len(got) > 0 {
			ss.turn.Store(tree)
		}
		leases = append(leases, got...)
		if err != nil || len(leases) >= limit {
			return leases, err
		}
	}
	return leases, nil
}

const (
	sqlHasReady = `SELECT t.id FROM tree t WHERE t.name = $1
		AND EXISTS (SELECT 1 FROM task_hot h WHERE h.tree = t.id AND h.ready_at IS NOT NULL)`
	sqlHasLost = `SELECT t.id FROM tree t WHERE t.name = $1
		AND EXISTS (SELECT 1 FROM task_hot h WHERE h.tree = t.id AND h.session = $2)`
)

// treeKeys returns the numbers of the trees that have a task to claim. A claim would find
// out too, but it is a write.
func (s *Store) treeKeys(ctx context.Context, ids []TreeID, from int64) ([]int64, error) {
	keys := make([]int64, 0, len(ids))
	for _, id := range ids {
		q, args := sqlHasReady, []any{string(id)}
		if from != 0 {
			q, args = sqlHasLost, append(args, from)
		}
		var key int64
		err := s.db.QueryRow(ctx, q, args, &key)
		if ignoreNoRows(err) != nil {
			return nil, wrap("claim task", err)
		}
		if err == nil {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

func (req *ClaimRequest) allows(tree Tree) bool { return req.Allow == nil || req.Allow(tree) }

func (ss *Session) claimTree(ctx context.Context, key, from int64, req *ClaimRequest, limit int) ([]*Lease, error) {
	tree, err := ss.s.knownTree(ctx, key)
	if errors.Is(err, sql.ErrNoRows) { // the tree was removed meanwhile
		ss.s.known.update(map[int64]bool{key: true}, nil)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if req.Trees != nil && !slices.Contains(req.Trees, tree.ID) || !ss.s.cfg.Placement.Satisfies(&tree.Placement) ||
		!req.allows(tree) {
		return nil, nil
	}
	c := &claim{session: ss, req: req, tree: tree, from: from, limit: limit}
	if err := ss.claimOwned(ctx, c); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // the claim is durable, so complete the leases
	for i, l := range c.leases {
		if err := ss.s.fill(ctx, l); err != nil {
			for _, rest := range c.leases[i:] {
				err = errors.Join(err, rest.Release(ctx))
			}
			return c.leases[:i], err
		}
	}
	return c.leases, nil
}

// claimOwned claims unless another living session owns the tree. It uses the cached tree
// first: the claim takes tasks only if the tree still has this owner and was not reopened
// since, and if it takes none, the tree is read again. A tree that was reopened has another
// configuration, so Allow is asked again.
func (ss *Session) claimOwned(ctx context.Context, c *claim) error {
	assumed, reopened := c.tree.owner, 0
	if assumed == 0 || assumed == ss.key {
		if err := ss.s.w.do(ctx, c); err != nil || len(c.leases) > 0 {
			return err
		}
	}
	err := ss.s.db.QueryRow(ctx, sqlOwner, []any{c.tree.key}, &c.tree.owner, &reopened)
	if err != nil {
		return wrap("claim task", ignoreNoRows(err)) // without a row the tree was removed
	}
	owner := c.tree.owner
	if owner == assumed && reopened == c.tree.Reopened && (owner == 0 || owner == ss.key) {
		return nil // there is no task to claim
	}
	if reopened == c.tree.Reopened {
		ss.s.remember(c.tree)
	} else if c.tree, err = ss.s.readTree(ctx, c.tree.key); err != nil {
		return ignoreNoRows(err)
	} else if !c.req.allows(c.tree) {
		return nil
	}
	if owner = c.tree.owner; owner != 0 && owner != ss.key {
		if alive, err := ss.s.alive(ctx, owner); alive || err != nil {
			return err
		}
	}
	return ss.s.w.do(ctx, c)
}

const sqlOwner = `SELECT owner, reopened FROM tree WHERE id = $1`

type claim struct {
	session *Session
	req     *ClaimRequest
	tree    Tree
	from    int64
	limit   int
	leases  []*Lease
}

const (
	leaseColumns = `id, parent, rank, fence, attempt, max_attempts, flags, started_at, active_us, pending,
		replays`

	sqlClaim = `UPDATE task_hot SET state = ` + dbRunning + `, session = $1, fence = fence + 1, ready_at = NULL, claimed_at = $2,
		started_at = COALESCE(started_at, $2)
		WHERE id IN (SELECT id FROM task_hot WHERE tree = $3 AND ready_at IS NOT NULL AND ready_at <= $2
			ORDER BY rank LIMIT $4 + 0) AND EXISTS (SELECT 1 FROM tree WHERE id = $3 AND owner = $5 AND reopened = $6)
		RETURNING ` + leaseColumns

	sqlTakeOver = `UPDATE task_hot SET session = $1, fence = fence + 1, claimed_at = $2
		WHERE id IN (SELECT id FROM task_hot WHERE session = $7 AND tree = $3 ORDER BY rank LIMIT $4 + 0)
			AND EXISTS (SELECT 1 FROM tree WHERE id = $3 AND owner = $5 AND reopened = $6)
		RETURNING ` + leaseColumns
)

func (c *claim) apply(ctx context.Context, b *batch) error {
	q, args := sqlClaim, []any{c.session.key, b.now, c.tree.key, c.limit, c.tree.owner, c.tree.Reopened}
	if c.from != 0 {
		q, args = sqlTakeOver, append(args, c.from)
	}
	c.leases = c.leases[:0]
	var ranks []int64
	err := sqldb.Each(ctx, b.tx.Query, func(scan sqldb.Scan) error {
		l, rank, err := c.scan(scan, b)
		l.calls.Store(c.from != 0 || l.fence > 1)
		at, _ := slices.BinarySearch(ranks, rank)
		ranks = slices.Insert(ranks, at, rank)
		c.leases = slices.Insert(c.leases, at, l)
		return err
	}, q, args...)
	if err != nil {
		return err
	}
	if c.from == 0 && len(c.leases) < c.limit {
		b.emptied[c.tree.key] = true
	}
	if len(c.leases) == 0 {
		return nil
	}
	return c.count(ctx, b)
}

// scan reads the leaseColumns of a task that was claimed.
func (c *claim) scan(scan sqldb.Scan, b *batch) (l *Lease, rank int64, err error) {
	l = &Lease{Tree: c.tree, s: b.s, session: c.session, claimedAt: b.now}
	var startedAt, active int64
	err = scan((*int64)(&l.Task.ID), &l.parent, &rank, &l.fence, &l.Task.Attempts, &l.Task.MaxAttempts,
		&l.flags, &startedAt, &active, &l.Task.Pending, &l.replays)
	l.Task.StartedAt, l.Task.Active = micros(startedAt), time.Duration(active)*time.Microsecond
	l.Task.Depth = depthOfRank(rank)
	return l, rank, err
}

func (c *claim) count(ctx context.Context, b *batch) error {
	st, err := b.stat(ctx, c.tree.key)
	if err != nil {
		return err
	}
	st.start(b.now)
	for _, l := range c.leases {
		id := int64(l.Task.ID)
		l.early = st.timing.Sum == 0
		if l.flags&sqldb.FlagVars != 0 {
			if err := b.undoVars(ctx, id); err != nil {
				return err
			}
		}
		if c.from == 0 {
			st.move(stQueued, stRunning)
		} else {
			b.event(st.tree, id, EventTaskLeaseLost, "")
		}
		b.event(st.tree, id, EventTaskStarted, `{"attempt":`+itoa(int64(l.Task.Attempts))+`,"fence":`+itoa(l.fence)+`}`)
	}
	n := int64(len(c.leases))
	if c.from != 0 {
		if len(st.holds) == 1 && st.holds[0].session == c.from { // its process died at some time since
			st.time().Skip(b.now)
		}
		st.hold(b.now, c.from, -n)
	}
	st.hold(b.now, c.session.key, n)
	return nil
}

const sqlHeld = `SELECT id, fence FROM task_hot WHERE session = $1`

// Lost returns those of the leases that the session no longer holds, because their tasks
// were cancelled or taken over. Their execution should stop.
func (ss *Session) Lost(ctx context.Context, leases []*Lease) ([]*Lease, error) {
	held := make(map[TaskID]int64, len(leases))
	err := sqldb.Each(ctx, ss.s.db.Query, func(scan sqldb.Scan) error {
		var id, fence int64
		err := scan(&id, &fence)
		held[TaskID(id)] = fence
		return err
	}, sqlHeld, ss.key)
	if err != nil {
		return nil, wrap("read leases", err)
	}
	var lost []*Lease
	for _, l := range leases {
		if held[l.Task.ID] != l.fence {
			lost = append(lost, l)
		}
	}
	return lost, nil
}

// Fence returns the fencing token, which increases with every claim of the task.
func (l *Lease) Fence() int64 { return l.fence }
