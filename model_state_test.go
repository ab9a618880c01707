package perdure_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure"
)

// The model is what a store has to be, in plain maps and without a thought of
// transactions, batches, processes or rows. Its methods do what the store's
// methods promise and return what they have to return, as text.

type model struct {
	trees []*mTree // by number
	tasks map[perdure.TaskID]*mTask
	keys  map[string]*mTree
	gone  []perdure.TaskID // removed by retention

	lastTask, lastCall int64
	lastTree           int
	lastSession        int
}

type mTree struct {
	id     perdure.TreeID
	number int
	root   *mTask
	owner  *mSession
	key    string
	limits perdure.Limits
	state  perdure.State
	total  int64

	reopened int // how often

	calls, uncertain, unpriced      int64
	input, output, cached, cost     int64
	openCalls, openTokens, openCost int64
	overran                         bool
	lostTokens, lostCost            int64 // of calls with unknown outcome
}

type mTask struct {
	id                    perdure.TaskID
	tree                  *mTree
	parent                *mTask
	children              []*mTask
	depth, position       int
	spec                  perdure.TaskSpec // with defaults
	state                 perdure.State
	attempt, max          int
	fence                 int64
	session               *mSession
	ready, delayed, woken bool
	waitsFor              *mTask
	result, data          string
	err                   *perdure.TaskError
	text                  string // streamed
	partial               bool   // the result lacks parts
	replays               int
	calls                 []*mCall
	usage                 perdure.Usage
}

type mCall struct {
	id                int64
	attempt, position int
	fence             int64
	state             perdure.CallState
	hash, response    string
	tokens, cost      int64 // reserved
}

type mSession struct {
	number int
	id     string
	dead   bool
	turn   int // the tree it claimed from last
}

// mLease is a claim: what the store calls a lease, as a fact.
type mLease struct {
	task    *mTask
	session *mSession
	fence   int64
	attempt int
	replays int
	used    map[int64]bool // calls of earlier attempts that answered

	reopened int // of the tree when it was claimed
}

func newModel() *model {
	return &model{tasks: make(map[perdure.TaskID]*mTask), keys: make(map[string]*mTree)}
}

func refused(code perdure.Code) string { return "refused: " + string(code) }

const (
	lost     = "refused: lease_lost"
	conflict = "refused: conflict"
	missing  = "refused: not_found"
	broke    = "refused: budget_exceeded"
	waits    = "waits for reservations"
)

func idList(ids []perdure.TaskID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.String()
	}
	return strings.Join(names, " ")
}

func (t *mTask) pending() int {
	n := 0
	for _, c := range t.children {
		if !c.state.Terminal() {
			n++
		}
	}
	return n
}

func (t *mTask) siblings() []*mTask {
	if t.parent == nil {
		return nil
	}
	return t.parent.children
}

func (m *model) createTree(id perdure.TreeID, spec *perdure.TreeSpec, owner *mSession) string {
	if t := m.keys[spec.IdempotencyKey]; spec.IdempotencyKey != "" && t != nil {
		return "tree " + string(t.id)
	}
	m.lastTree++
	t := &mTree{id: id, number: m.lastTree, owner: owner, key: spec.IdempotencyKey, limits: spec.Limits,
		state: perdure.Queued}
	t.root = m.add(t, nil, &spec.Root)
	m.trees = append(m.trees, t)
	if t.key != "" {
		m.keys[t.key] = t
	}
	return "tree " + string(id)
}

func (m *model) add(tree *mTree, parent *mTask, spec *perdure.TaskSpec) *mTask {
	m.lastTask++
	t := &mTask{id: perdure.TaskID(m.lastTask), tree: tree, parent: parent, spec: *spec, state: perdure.Queued, attempt: 1,
		max: spec.MaxAttempts, ready: true}
	if t.max == 0 {
		t.max = perdure.DefaultMaxAttempts
	}
	if parent != nil {
		t.depth, t.position = parent.depth+1, len(parent.children)
		if parent.spec.Strategy == perdure.Sequential {
			for _, s := range parent.children {
				if !s.state.Terminal() {
					t.waitsFor, t.ready = s, false
				}
			}
		}
		parent.children = append(parent.children, t)
	}
	tree.total++
	m.tasks[t.id] = t
	return t
}

// failFast reports whether a failed child ends the others.
func (t *mTask) failFast() bool {
	if t.spec.Policy == "" {
		return t.spec.Strategy == perdure.Sequential
	}
	return t.spec.Policy == perdure.PolicyFail
}

func (m *model) addChildren(p *mTask, specs []perdure.TaskSpec) string {
	n, limit := int64(len(specs)), p.tree.limits.MaxNodes
	if limit > 0 && p.tree.total+n > limit {
		return broke
	}
	ids := make([]perdure.TaskID, len(specs))
	for i := range specs {
		ids[i] = m.add(p.tree, p, &specs[i]).id
	}
	return "made " + idList(ids)
}

func (m *model) submit(parent perdure.TaskID, specs []perdure.TaskSpec) string {
	p := m.tasks[parent]
	if p == nil {
		return missing
	}
	if p.state.Terminal() {
		return conflict
	}
	return m.addChildren(p, specs)
}

// rank orders claimable tasks.
func rank(a, b *mTask) int {
	if a.woken != b.woken {
		if a.woken {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.spec.Priority, a.spec.Priority), cmp.Compare(b.depth, a.depth), cmp.Compare(a.id, b.id))
}

// mayRun reports whether the session may claim from the tree.
func (t *mTree) mayRun(s *mSession) bool { return t.owner == nil || t.owner == s || t.owner.dead }

// claim takes from dead sessions first, then what is ready; trees take turns.
func (m *model) claim(s *mSession, limit int, only []perdure.TreeID) []*mLease {
	var leases []*mLease
	for _, from := range append(m.deadHolders(), nil) {
		start := s.turn
		for _, number := range m.treesFrom(start) {
			t := m.trees[number]
			if len(leases) == limit {
				return leases
			}
			if !t.mayRun(s) || only != nil && !slices.Contains(only, t.id) {
				continue
			}
			got := m.claimTree(s, t, from, limit-len(leases))
			if len(got) > 0 {
				s.turn = t.number
			}
			leases = append(leases, got...)
		}
		if len(leases) == limit {
			return leases
		}
	}
	return leases
}

// treesFrom lists the indexes of the trees, those behind the given one first.
func (m *model) treesFrom(number int) []int {
	var after, before []int
	for i, t := range m.trees {
		if t.number > number {
			after = append(after, i)
		} else {
			before = append(before, i)
		}
	}
	return append(after, before...)
}

func (m *model) deadHolders() []*mSession {
	found := make(map[*mSession]bool)
	for _, t := range m.tasks {
		if t.session != nil && t.session.dead {
			found[t.session] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b *mSession) int { return a.number - b.number })
}

func (t *mTask) claimable() bool { return t.state == perdure.Queued && t.ready && !t.delayed }

func (m *model) claimTree(s *mSession, tree *mTree, from *mSession, limit int) []*mLease {
	var able []*mTask
	for _, t := range m.tasks {
		if t.tree == tree && (from == nil && t.claimable() || from != nil && t.session == from) {
			able = append(able, t)
		}
	}
	slices.SortFunc(able, rank)
	var leases []*mLease
	for _, t := range able[:min(limit, len(able))] {
		leases = append(leases, m.take(t, s))
	}
	return leases
}

func (m *model) take(t *mTask, s *mSession) *mLease {
	t.state, t.session, t.ready = perdure.Running, s, false
	t.fence++
	if t.tree.state == perdure.Queued {
		t.tree.state = perdure.Running
	}
	return &mLease{reopened: t.tree.reopened, task: t, session: s, fence: t.fence, attempt: t.attempt, replays: t.replays,
		used: make(map[int64]bool)}
}

// held reports whether the lease is still the task's.
func (m *model) held(l *mLease) bool {
	t := m.tasks[l.task.id]
	return t == l.task && t.state == perdure.Running && t.fence == l.fence
}

func (m *model) complete(l *mLease, r perdure.Result) string {
	if !m.held(l) {
		return lost
	}
	if l.task.pending() > 0 {
		return conflict
	}
	l.task.result, l.task.data, l.task.err, l.task.partial = r.Text, string(r.Data), nil, r.Partial
	l.task.keepCalls(r.Partial && r.KeepCalls)
	m.end(l.task, perdure.Completed)
	if l.task.parent == nil && r.Partial {
		l.task.tree.state = perdure.Partial
	}
	return "done"
}

// end makes a task terminal, with everything that follows for its family.
func (m *model) end(t *mTask, state perdure.State) {
	m.stop(t, state)
	if t.parent == nil {
		t.tree.state = state
		return
	}
	if state != perdure.Completed && t.parent.failFast() {
		for _, s := range t.siblings() {
			m.cancelBelow(s, "a sibling or the parent failed")
		}
	}
	m.wake(t.parent)
}

// stop makes a task terminal and lets the next step of a sequence go.
func (m *model) stop(t *mTask, state perdure.State) {
	m.closeCalls(t, 1<<62)
	for _, s := range t.siblings() {
		switch {
		case s.waitsFor != t:
		case t.waitsFor != nil && t.waitsFor.state.Terminal():
			panic("a blocked task waits for an ended one")
		case t.waitsFor != nil:
			s.waitsFor = t.waitsFor
		default:
			s.waitsFor, s.ready = nil, true
		}
	}
	t.state, t.session, t.ready, t.delayed, t.waitsFor = state, nil, false, false, nil
}

// cancelBelow cancels a task and its descendants, deepest first.
func (m *model) cancelBelow(t *mTask, reason string) int {
	if t.state.Terminal() {
		return 0
	}
	n := 1
	for _, c := range t.children {
		n += m.cancelBelow(c, reason)
	}
	m.stop(t, perdure.Cancelled)
	t.result, t.data, t.err = "", "", &perdure.TaskError{Kind: "cancelled", Message: reason}
	return n
}

func (m *model) wake(t *mTask) {
	if t.state == perdure.Waiting && t.pending() == 0 {
		t.state, t.ready, t.woken = perdure.Queued, true, true
	}
}

func (m *model) fail(l *mLease, f perdure.Failure) string {
	if !m.held(l) {
		return lost
	}
	t := l.task
	t.result, t.data, t.err = "", "", &perdure.TaskError{Kind: f.Kind, Message: f.Message}
	t.keepCalls(f.KeepCalls)
	if f.Retry && t.attempt < t.max {
		m.closeCalls(t, 1<<62)
		t.state, t.session, t.ready, t.delayed = perdure.Queued, nil, true, f.After > 0
		t.attempt++
		return "retried true"
	}
	for _, c := range t.children {
		m.cancelBelow(c, "a sibling or the parent failed")
	}
	m.end(t, perdure.Failed)
	return "retried false"
}

func (m *model) suspend(l *mLease, wait bool) string {
	if !m.held(l) {
		return lost
	}
	t := l.task
	t.session = nil
	if wait && t.pending() > 0 {
		t.state = perdure.Waiting
		return "done"
	}
	t.state, t.ready = perdure.Queued, true
	return "done"
}

func (m *model) spawn(l *mLease, specs []perdure.TaskSpec) string {
	if !m.held(l) {
		return lost
	}
	made := m.addChildren(l.task, specs)
	if made != broke {
		m.suspend(l, true)
	}
	return made
}

func (m *model) spawnLeased(l *mLease, spec perdure.TaskSpec) (child *mLease, refused string) {
	if !m.held(l) {
		return nil, lost
	}
	// The tree of a session that died may have been reopened, with another configuration.
	if l.task.spec.Strategy == perdure.Sequential || l.reopened != l.task.tree.reopened {
		return nil, conflict
	}
	if made := m.addChildren(l.task, []perdure.TaskSpec{spec}); made == broke {
		return nil, broke
	}
	return m.take(l.task.children[len(l.task.children)-1], l.session), ""
}

func (m *model) cancel(id perdure.TaskID, reason string) string {
	t := m.tasks[id]
	if t == nil {
		return missing
	}
	if t.state.Terminal() {
		return conflict
	}
	n := m.cancelBelow(t, reason)
	m.end(t, perdure.Cancelled)
	return fmt.Sprint("cancelled ", n)
}

// closeCalls makes the calls uncertain that leases before the given fence sent.
func (m *model) closeCalls(t *mTask, fence int64) {
	for _, c := range t.calls {
		if c.state != perdure.CallStarted || c.fence >= fence {
			continue
		}
		c.state = perdure.CallUncertain
		m.unreserve(t.tree, c)
		t.tree.uncertain++
		t.tree.lostTokens += c.tokens
		t.tree.lostCost += c.cost
		m.spend(t, perdure.Usage{Calls: 1}, 0)
	}
}

func (m *model) unreserve(t *mTree, c *mCall) {
	t.openCalls--
	t.openTokens -= c.tokens
	t.openCost -= c.cost
}

func (m *model) spend(t *mTask, u perdure.Usage, cost int64) {
	t.usage.Calls += u.Calls
	t.usage.InputTokens += u.InputTokens
	t.usage.OutputTokens += u.OutputTokens
	t.usage.CachedTokens += u.CachedTokens
	t.usage.UnpricedCalls += u.UnpricedCalls
	t.usage.CostUSD += float64(cost)
	r := t.tree
	r.calls, r.input, r.output = r.calls+u.Calls, r.input+u.InputTokens, r.output+u.OutputTokens
	r.cached, r.unpriced, r.cost = r.cached+u.CachedTokens, r.unpriced+u.UnpricedCalls, r.cost+cost
}

func (m *model) begin(l *mLease, spec perdure.CallSpec) string {
	if !m.held(l) {
		return lost
	}
	t, r := l.task, l.task.tree
	for _, c := range t.calls {
		if c.attempt != l.attempt || c.position != spec.Position {
			continue
		}
		if c.state == perdure.CallCompleted && c.hash == spec.RequestHash {
			return fmt.Sprintf("replayed %s %s", perdure.CallID(c.id), c.response)
		}
		if c.state == perdure.CallStarted && c.fence == l.fence {
			return conflict
		}
		if c.state == perdure.CallStarted {
			m.closeCalls(t, l.fence)
		}
	}
	if c := t.earlier(l, &spec); c != nil {
		return fmt.Sprintf("replayed %s %s", perdure.CallID(c.id), c.response)
	}
	calls, tokens, cost := r.calls+1, r.input+r.output+r.lostTokens+spec.ReserveTokens,
		r.cost+r.lostCost+spec.ReserveCostMicros
	over := func(limit, used int64) bool { return limit > 0 && used > limit }
	counts := int64(2)
	if r.output == 0 || r.overran {
		counts = 64
	}
	switch lim := r.limits; {
	case over(lim.Calls, calls), over(lim.Tokens, tokens), over(lim.CostMicros, cost):
		return broke
	case over(lim.Calls, calls+r.openCalls):
		return waits
	// What is reserved counts more than once, unless nothing else is reserved.
	case over(lim.Tokens, tokens+counts*r.openTokens), over(lim.CostMicros, cost+counts*r.openCost):
		return waits
	}
	m.lastCall++
	t.calls = append(t.calls, &mCall{id: m.lastCall, attempt: l.attempt, position: spec.Position, fence: l.fence,
		state: perdure.CallStarted, hash: spec.RequestHash, tokens: spec.ReserveTokens, cost: spec.ReserveCostMicros})
	r.openCalls++
	r.openTokens += spec.ReserveTokens
	r.openCost += spec.ReserveCostMicros
	return "began " + perdure.CallID(m.lastCall).String()
}

func (m *model) settle(l *mLease, id perdure.CallID, res perdure.CallResult) string {
	if !m.held(l) {
		return lost
	}
	for _, c := range l.task.calls {
		if c.id != int64(id) || c.state != perdure.CallStarted || c.fence != l.fence {
			continue
		}
		c.state, c.response = perdure.CallCompleted, res.Response
		u := perdure.Usage{Calls: int64(res.Tries), InputTokens: res.InputTokens, OutputTokens: res.OutputTokens,
			CachedTokens: res.CachedTokens}
		var cost int64
		switch {
		case res.CostMicros != nil:
			cost = *res.CostMicros
		case res.Err == nil, res.InputTokens+res.OutputTokens > 0:
			u.UnpricedCalls = 1
		}
		if res.Err != nil {
			c.state = perdure.CallFailed
		}
		m.unreserve(l.task.tree, c)
		m.spend(l.task, u, cost)
		if c.tokens > 0 && u.InputTokens+u.OutputTokens > 2*u.Calls*c.tokens || c.cost > 0 && cost > 2*u.Calls*c.cost {
			l.task.tree.overran = true
		}
		return "done"
	}
	return conflict
}

func (m *model) stream(l *mLease, text string) string {
	if !m.held(l) {
		return lost
	}
	l.task.text += text
	return "done"
}

// prune removes the trees that have ended.
func (m *model) prune(failed bool) string {
	var names []string
	keep := m.trees[:0]
	for _, t := range m.trees {
		if !t.state.Terminal() || (t.state == perdure.Failed || t.state == perdure.Partial) && !failed {
			keep = append(keep, t)
			continue
		}
		names = append(names, string(t.id))
		delete(m.keys, t.key)
		for id, task := range m.tasks {
			if task.tree == t {
				m.gone = append(m.gone, id)
				delete(m.tasks, id)
			}
		}
	}
	m.trees = keep
	slices.Sort(m.gone)
	return "pruned " + strings.Join(names, " ")
}

func (m *model) recover(t *mTree, s *mSession) string {
	if t.owner != nil && t.owner != s && !t.owner.dead {
		return conflict
	}
	if s != nil && !t.state.Terminal() {
		t.owner = s
	}
	count := make(map[perdure.State]int)
	lostTasks := 0
	for _, task := range m.tasks {
		if task.tree == t {
			count[task.state]++
			if task.session != nil && task.session.dead {
				lostTasks++
			}
		}
	}
	return fmt.Sprintf("done %d requeued %d pending %d given up %d running %d", count[perdure.Completed], lostTasks,
		count[perdure.Queued]+count[perdure.Waiting], count[perdure.Failed]+count[perdure.Cancelled],
		count[perdure.Running]-lostTasks)
}
