package handoff

import (
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Limits of a checkpoint's compact JSON, in bytes.
const (
	// DefaultLimit is the limit of a checkpoint in builder-state.json.
	DefaultLimit = 2048
	// MinLimit is enough for the shortened fields that are never left out.
	MinLimit = 1536
)

// The numbers of entries for which room is reserved, and the limits of what is shown.
const (
	latestEntries = 3 // decisions
	latestSteps   = 2
	nextEntries   = 3 // pending steps
	maxObstacles  = 3 // of each kind, and of failing checks
	maxSteps      = 10
	maxExtra      = 120 // bytes of unknown fields of an entry
	// maxMisses is how many entries in a row may not fit before no more are tried.
	maxMisses = 16
)

// Project returns the checkpoint of a ledger in at most limit bytes of compact JSON (see
// [Checkpoint.Compact]): [DefaultLimit] if limit is 0, at least [MinLimit].
//
// The task and its contract, the next action, the first blocker, the first action that is not
// allowed and a failing check are always shown, shortened with "…" if needed. Then room is
// reserved, so that no kind of entry displaces another, for a shortened form of the current
// step, the next three pending steps, further obstacles and failing checks, the last three
// decisions with their reasons, the last failed approach and the last two steps. The rest of
// the space is filled in a fixed order: the full text of these entries, then further ones of
// each kind, the IDs of the workspace, the files with their hashes, and the history. A text
// that does not fit is shortened; an entry that does not fit even so is left out, and the next
// one is tried. Cut and Files count the missing entries, Ledger says where they are.
//
// The same ledger and limit always give the same checkpoint. Times are in UTC
// and whole seconds.
func Project(l Ledger, limit int) Checkpoint {
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = max(limit, MinLimit)
	p := newProjection(&l, limit)
	if whole := p.whole(); whole != nil {
		return p.withDigest(*whole)
	}
	p.reserve()
	p.fill()
	return p.withDigest(p.checkpoint())
}

// tooLarge reports whether a checkpoint does not fit into the limit.
func (p *projection) tooLarge(c *Checkpoint) bool {
	e := &encoder{limit: p.limit, out: p.text[:0]}
	e.object(c)
	p.text = e.out
	if e.err != nil || e.over() {
		return true
	}
	p.size, p.cut = len(e.out), Cut{}
	if c.Cut != nil {
		p.cut = *c.Cut
	}
	return false
}

// kind is a part of a checkpoint, or a list of them.
type kind int

const (
	taskID kind = iota
	contractRef
	nextAction
	failure
	blocker
	notAllowed
	check // by index in results
	current
	partialWork
	pending
	decision // the last one is 0, as in the other lists that grow
	approach
	step
	file // of the step, created files first
	stateIDs
	agent
	other
	kinds
)

// part identifies a part of a checkpoint. Sub is the number of a file of a step.
type part struct {
	kind       kind
	index, sub int
}

// level is how much of a part is shown.
type level int

const (
	hidden level = iota
	brief        // shortened to the room that is reserved
	short
	full
)

// projection is a choice of the parts of a ledger that a checkpoint shows.
type projection struct {
	l       *Ledger
	limit   int
	results []Result // the last one of each activity
	hashes  map[string]*FileEntry
	touched int          // the number of paths in the ledger
	others  []otherField // the valid ones
	invalid int          // the number of the other fields of other programs
	levels  map[part]level
	misses  int    // entries in a row that did not fit
	size    int    // of the last checkpoint that fit; 0 before the first
	cut     Cut    // its counts of missing entries
	text    []byte // of the last checkpoint, to use its memory again
}

// otherField is a field of another program: in the metadata, the verification, or the
// checkpoint itself.
type otherField struct {
	in   func(*Checkpoint) *Extra
	name string
	raw  json.RawMessage
}

func newProjection(l *Ledger, limit int) *projection {
	p := &projection{l: l, limit: limit, results: lastResults(l.Verification.Results),
		hashes: make(map[string]*FileEntry, len(l.Files)), levels: make(map[part]level)}
	for i := range l.Files {
		p.hashes[l.Files[i].Path] = &l.Files[i]
	}
	p.touched = len(p.hashes) + len(l.touched(func(path string) bool { return p.hashes[path] == nil }))
	for _, from := range []struct {
		extra Extra
		in    func(*Checkpoint) *Extra
	}{{l.Metadata.Extra, func(c *Checkpoint) *Extra { return &c.Metadata.Extra }},
		{l.Verification.Extra, func(c *Checkpoint) *Extra { return &c.Verification.Extra }},
		{l.Extra, func(c *Checkpoint) *Extra { return &c.Extra }}} {
		for _, name := range slices.Sorted(maps.Keys(from.extra)) {
			if raw := from.extra[name]; json.Valid(raw) {
				p.others = append(p.others, otherField{from.in, name, jsontree.Compact(raw)})
			} else {
				p.invalid++
			}
		}
	}
	return p
}

// whole returns the checkpoint with all parts, nil if they do not fit.
func (p *projection) whole() *Checkpoint {
	const smallest = 3 // bytes that a part adds at least
	if (len(p.l.PendingSteps)+len(p.l.Decisions)+len(p.l.FailedApproaches)+len(p.results))*smallest > p.limit {
		return nil
	}
	for at := range p.each() {
		p.levels[at] = full
	}
	c := p.checkpoint()
	if !p.tooLarge(&c) {
		return &c
	}
	clear(p.levels)
	return nil
}

// reserve shows the parts for which room is reserved, first as short as possible.
func (p *projection) reserve() {
	for _, at := range p.always() {
		p.levels[at] = brief
	}
	reserved := p.reserved()
	for _, to := range []level{brief, short, full} {
		var raise []part
		for _, at := range reserved {
			if p.levels[at] == to-1 {
				raise = append(raise, at)
			}
		}
		if p.try(to, raise...) { // as most ledgers: one encoding instead of one a part
			continue
		}
		for _, at := range raise {
			p.try(to, at)
		}
	}
}

// fill adds the other parts to what is left of the limit.
func (p *projection) fill() {
	for at := range p.each() {
		if p.misses >= maxMisses {
			return
		}
		p.add(at)
	}
}

// add shows a part in the longest form that fits.
func (p *projection) add(at part) {
	if p.levels[at] != hidden || at.kind == file && p.levels[part{kind: step, index: at.index}] == hidden {
		return
	}
	shortest := brief
	if at.kind >= file { // paths and IDs are never shortened
		shortest = full
	}
	longest := full
	if p.misses == 0 { // there may be room for all of it
		if p.try(full, at) {
			return
		}
		longest--
	}
	if longest < shortest || !p.try(shortest, at) {
		p.misses++
		return
	}
	p.misses = 0
	for to := longest; to > shortest && !p.try(to, at); to-- {
		continue
	}
}

// try shows parts, which have the same level, in another length, if all of them fit.
func (p *projection) try(to level, parts ...part) bool {
	if len(parts) == 0 {
		return true
	}
	was := p.levels[parts[0]]
	for _, at := range parts {
		p.levels[at] = to
	}
	if len(parts) > 1 || was != hidden || !p.hopeless(parts[0]) {
		if c := p.checkpoint(); !p.tooLarge(&c) {
			return true
		}
	}
	for _, at := range parts {
		p.levels[at] = was
	}
	return false
}

// hopeless reports whether the JSON of a new entry alone is longer than what is left, which is
// cheaper to find out than the length of the checkpoint with it. It may be false for others that
// do not fit.
func (p *projection) hopeless(at part) bool {
	e := &encoder{out: p.text[:0]}
	missing := 0
	switch at.kind {
	case decision:
		entry := p.decision(at)
		e.object(&entry)
		missing = p.cut.Decisions
	case approach:
		entry := p.approach(at)
		e.object(&entry)
		missing = p.cut.FailedApproaches
	case step:
		entry := p.step(at)
		e.object(&entry)
		missing = p.cut.CompletedSteps
	case pending:
		e.text(p.clip(at, p.l.PendingSteps[at.index]))
		missing = p.cut.PendingSteps
	default:
	}
	p.text = e.out
	const digit = 1 // is all that a count loses that does not become 0
	return missing > 1 && p.size+len(e.out)-digit > p.limit
}

// always returns the parts that are never left out.
func (p *projection) always() []part {
	list := slices.Concat([]part{{kind: taskID}, {kind: contractRef}, {kind: nextAction}}, p.parts(blocker, 0, 1),
		p.parts(notAllowed, 0, 1))
	if failing := p.checks(true); len(failing) > 0 {
		list = append(list, failing[0])
	}
	return list
}

// reserved returns the parts for which room is reserved, the most important first.
func (p *projection) reserved() []part {
	failing := p.checks(true)
	return slices.Concat(p.always(), p.currentStep(), p.parts(pending, 0, 1), []part{{kind: failure}},
		p.parts(blocker, 1, maxObstacles), p.parts(decision, 0, 1), p.parts(approach, 0, 1), p.parts(step, 0, 1),
		p.parts(pending, 1, nextEntries), p.parts(decision, 1, latestEntries), p.parts(step, 1, latestSteps),
		p.parts(notAllowed, 1, maxObstacles), failing[min(1, len(failing)):min(maxObstacles, len(failing))])
}

// currentStep returns the parts of the current step; none without one.
func (p *projection) currentStep() []part {
	if p.l.CurrentStep == nil {
		return nil
	}
	return []part{{kind: current}, {kind: partialWork}}
}

// each returns all parts in the order in which they are added.
func (p *projection) each() iter.Seq[part] {
	const moreNext, more = 8, 3
	now := func() []part {
		return slices.Concat(p.reserved(), p.parts(blocker, 0, all), p.parts(notAllowed, 0, all), p.checks(true),
			p.parts(pending, 0, moreNext), p.parts(approach, 0, more), []part{{kind: stateIDs}},
			p.parts(step, 0, more), p.files(0, more))
	}
	history := []func() []part{
		func() []part { return p.parts(agent, 0, all) }, func() []part { return p.parts(decision, 0, all) },
		func() []part { return p.parts(approach, 0, all) }, func() []part { return p.parts(step, 0, all) },
		func() []part { return p.files(0, all) }, func() []part { return p.parts(pending, 0, all) },
		func() []part { return p.checks(false) }, func() []part { return p.parts(other, 0, all) },
	}
	return func(yield func(part) bool) {
		for _, list := range append([]func() []part{now}, history...) {
			for _, at := range list() {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// all is the end of a whole list.
const all = math.MaxInt

// parts returns the entries of a list from one index to another.
func (p *projection) parts(k kind, from, to int) []part {
	to = min(to, p.length(k))
	list := make([]part, 0, max(0, to-from))
	for i := from; i < to; i++ {
		list = append(list, part{kind: k, index: i})
	}
	return list
}

// length returns the number of entries of a list that can be shown.
func (p *projection) length(k kind) int {
	switch k {
	case blocker:
		return len(p.l.Blockers)
	case notAllowed:
		return len(p.l.NotAllowed)
	case pending:
		return len(p.l.PendingSteps)
	case decision:
		return len(p.l.Decisions)
	case approach:
		return len(p.l.FailedApproaches)
	case step:
		return min(len(p.l.CompletedSteps), maxSteps)
	case agent:
		return len(p.l.Metadata.PreviousAgents)
	case other:
		return len(p.others)
	case taskID, contractRef, nextAction, failure, check, current, partialWork, file, stateIDs:
	}
	return 0
}

// checks returns the checks that failed, or the others.
func (p *projection) checks(failing bool) []part {
	var list []part
	for i, r := range p.results {
		if (r.Status == StatusFailed) == failing {
			list = append(list, part{kind: check, index: i})
		}
	}
	return list
}

// files returns the files of steps, those of the last step first. Paths that are too long, or
// not valid text, are not shown.
func (p *projection) files(from, to int) []part {
	var list []part
	for i := from; i < min(to, p.length(step)); i++ {
		s := p.backwards(i)
		for j := range len(s.FilesCreated) + len(s.FilesModified) {
			at := part{file, i, j}
			if path := p.path(at); path != "" && clipped(path, pathSize) == path {
				list = append(list, at)
			}
		}
	}
	return list
}

// backwards returns a completed step by its number from the end.
func (p *projection) backwards(i int) *Step { return &p.l.CompletedSteps[len(p.l.CompletedSteps)-1-i] }

func lastResults(all []Result) []Result {
	var last []Result
	at := make(map[string]int, len(all))
	for _, r := range all {
		if i, known := at[r.Activity]; known {
			last[i] = r
			continue
		}
		at[r.Activity] = len(last)
		last = append(last, r)
	}
	return last
}

// noDigest is the placeholder of a digest, which is computed once at the end.
const noDigest = "0000000000000000"

func (p *projection) withDigest(c Checkpoint) Checkpoint {
	if c.Files == nil || c.Files.Rest == 0 {
		return c
	}
	rest := make([]FileEntry, 0, c.Files.Rest)
	for path, f := range p.hashes {
		if _, listed := c.Files.Listed[path]; !listed {
			rest = append(rest, *f)
		}
	}
	c.Files.RestDigest = Digest(rest)[:len(noDigest)]
	return c
}
