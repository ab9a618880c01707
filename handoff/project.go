package handoff

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Limits of a checkpoint's compact JSON, in bytes.
const (
	// DefaultLimit is what a checkpoint in builder-state.json may have.
	DefaultLimit = 2048
	// MinLimit always holds the shortest form of what is never left out.
	MinLimit = 1536
)

// How many entries are shown before parts of lower priority get their turn, and
// of completed steps at all.
const (
	latestEntries = 3
	nextEntries   = 8
	maxSteps      = 10
	maxExtra      = 120 // bytes of unknown fields of an entry
)

// Project returns what fits of a ledger into limit bytes of compact JSON (see
// [Checkpoint.Compact]): [DefaultLimit] when limit is 0, at least [MinLimit].
//
// What is shown is the longest beginning that fits of a fixed order: the task
// and its contract; the next action; blockers and what is not allowed; failing
// checks; the current step and the next pending ones; the latest decisions; the
// latest failed approaches; the latest completed steps with their files and
// hashes; then the history: previous agents, the rest of each, other results,
// fields of other programs. The first four are always there, shortened with "…"
// where they have to be. So a larger limit never shows less of anything. Cut and
// Files count what is missing, Ledger says where it is.
//
// The same ledger and limit always give the same checkpoint. Times are in UTC
// and whole seconds.
func Project(l Ledger, limit int) Checkpoint {
	if limit <= 0 {
		limit = DefaultLimit
	}
	p := newProjection(&l)
	parts := p.parts()
	shown := p.checkpoint()
	for _, next := range parts {
		next()
		c := p.checkpoint()
		if tooLarge(&c, max(limit, MinLimit)) {
			return p.sealed(p.orWhole(shown, parts, max(limit, MinLimit)))
		}
		shown = c
	}
	return p.sealed(shown)
}

func tooLarge(c *Checkpoint, limit int) bool {
	e := &encoder{most: limit}
	e.object(c)
	return e.err != nil || e.over()
}

// orWhole is for the ledger that fits as a whole but not without its last
// entries: the counts of what is cut take room too.
func (p *projection) orWhole(shown Checkpoint, parts []func(), limit int) Checkpoint {
	const smallest, smallestDecision = 3, 15 // bytes that an entry adds at least
	if len(parts)*smallest > limit || len(p.l.Decisions)*smallestDecision > limit {
		return shown
	}
	whole := newProjection(p.l)
	for _, next := range whole.parts() {
		next()
	}
	if c := whole.checkpoint(); !tooLarge(&c, limit) {
		return c
	}
	return shown
}

// projection is a checkpoint that grows entry by entry.
type projection struct {
	l       *Ledger
	c       Checkpoint
	results []Result // the last one of each activity
	hashes  map[string]FileEntry
	touched int // how many paths the ledger knows

	// What grows at its front is kept latest first.
	decisions  []Decision
	approaches []FailedApproach
	steps      []Step
	agents     []string

	checks      map[int]Result // by place in results
	others      int            // unknown fields that are shown
	otherFields int
}

// newProjection starts with the floor: what is never left out.
func newProjection(l *Ledger) *projection {
	p := &projection{l: l, results: lastResults(l.Verification.Results),
		hashes: make(map[string]FileEntry, len(l.Files)), checks: make(map[int]Result)}
	for _, f := range l.Files {
		p.hashes[f.Path] = f
	}
	p.touched = len(p.hashes)
	for _, path := range l.Touched() {
		if _, known := p.hashes[path]; !known {
			p.touched++
		}
	}
	p.otherFields = len(l.Extra) + len(l.Metadata.Extra) + len(l.Verification.Extra)

	c := &p.c
	c.SchemaVersion = SchemaVersion
	c.TaskID = clipped(l.TaskID, floorID)
	c.Phase = Phase(clipped(string(orElse(l.Phase, PhasePlanning)), floorKeyword))
	c.Metadata = Metadata{
		CreatedBy:     clipped(orElse(l.Metadata.CreatedBy, "unknown"), floorAgent),
		LastUpdatedAt: seconds(l.Metadata.LastUpdatedAt),
		Reason:        Reason(clipped(string(orElse(l.Metadata.Reason, ReasonPeriodic)), floorKeyword)),
	}
	c.Ledger = clipped(l.Ref, floorText)
	c.Verification.ContractRef = clipped(l.Verification.ContractRef, floorRef)
	c.NextAction = clipped(l.NextAction, floorAction)
	c.Blockers = firstText(l.Blockers)
	c.NotAllowed = firstText(l.NotAllowed)
	for i, r := range p.results {
		if r.Status == StatusFailed {
			floor := shownResult(r, floorCheck)
			floor.Extra = nil
			p.checks[i] = floor
			break
		}
	}
	return p
}

func firstText(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return []string{clipped(list[0], floorText)}
}

func orElse[T ~string](text, otherwise T) T {
	if text == "" {
		return otherwise
	}
	return text
}

// seconds is an instant as checkpoints have it; those JSON cannot hold become
// none.
func seconds(at time.Time) time.Time {
	at = at.UTC().Truncate(time.Second)
	if at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}
	}
	return at
}

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

func shownResult(r Result, activity size) Result {
	return Result{
		Activity: clipped(r.Activity, activity),
		Status:   Status(clipped(string(orElse(r.Status, StatusPending)), floorKeyword)),
		RunAt:    seconds(r.RunAt),
		RanBy:    Runner(clipped(string(r.RanBy), floorKeyword)),
		Extra:    small(r.Extra),
	}
}

// small returns the unknown fields of an entry when they take little room.
func small(extra Extra) Extra {
	if len(extra) == 0 || !valid(extra) {
		return nil
	}
	if text, err := marshal(extra); err != nil || len(text) > maxExtra {
		return nil
	}
	return extra
}

// valid tells whether unknown fields, which callers may have set, are JSON.
func valid(extra Extra) bool {
	for _, raw := range extra {
		if !json.Valid(raw) {
			return false
		}
	}
	return true
}

// parts are the entries that the projection grows by, in their order.
func (p *projection) parts() []func() {
	l := p.l
	decisions, approaches, steps := len(l.Decisions), len(l.FailedApproaches), min(len(l.CompletedSteps), maxSteps)
	var all []func()
	add := func(more ...[]func()) {
		for _, m := range more {
			all = append(all, m...)
		}
	}
	add(p.taskParts(), p.obstacleParts(), p.checkParts(true), p.currentParts(), p.pendingParts(0, nextEntries),
		p.decisionParts(0, min(decisions, latestEntries)),
		p.approachParts(0, min(approaches, latestEntries)),
		p.stateParts(), p.stepParts(0, min(steps, latestEntries)),
		// The history.
		p.agentParts(),
		p.decisionParts(latestEntries, decisions),
		p.approachParts(latestEntries, approaches),
		p.stepParts(latestEntries, steps),
		p.pendingParts(nextEntries, len(l.PendingSteps)),
		p.checkParts(false), p.otherParts())
	return all
}

// taskParts lets what the floor shortened grow.
func (p *projection) taskParts() []func() {
	l, c := p.l, &p.c
	return []func(){
		func() { c.TaskID = clipped(l.TaskID, textSize) },
		func() { c.Verification.ContractRef = clipped(l.Verification.ContractRef, textSize) },
		func() { c.NextAction = clipped(l.NextAction, actionSize) },
	}
}

func (p *projection) obstacleParts() []func() {
	parts := append(textParts(p.l.Blockers, &p.c.Blockers), textParts(p.l.NotAllowed, &p.c.NotAllowed)...)
	return append(parts, func() { p.c.Error = clipped(p.l.Error, textSize) })
}

// textParts shows one text after the other; the first one stands there already.
func textParts(list []string, shown *[]string) []func() {
	parts := make([]func(), 0, len(list))
	for i, text := range list {
		parts = append(parts, func() { *shown = append((*shown)[:i:i], clipped(text, textSize)) })
	}
	return parts
}

// checkParts shows the checks that fail, or the others.
func (p *projection) checkParts(failing bool) []func() {
	var parts []func()
	for i, r := range p.results {
		if (r.Status == StatusFailed) == failing {
			parts = append(parts, func() { p.checks[i] = shownResult(r, textSize) })
		}
	}
	return parts
}

func (p *projection) currentParts() []func() {
	step := p.l.CurrentStep
	if step == nil {
		return nil
	}
	show := func(partial string) func() {
		return func() {
			p.c.CurrentStep = &CurrentStep{Description: clipped(step.Description, textSize), StartedAt: seconds(step.StartedAt),
				PartialWork: partial, Extra: small(step.Extra)}
		}
	}
	return []func(){show(""), show(clipped(step.PartialWork, partialSize))}
}

func (p *projection) pendingParts(from, to int) []func() {
	var parts []func()
	for i := from; i < min(to, len(p.l.PendingSteps)); i++ {
		parts = append(parts, func() { p.c.PendingSteps = append(p.c.PendingSteps, clipped(p.l.PendingSteps[i], textSize)) })
	}
	return parts
}

// Parts of lists of which the latest entries count are numbered from the last
// entry, 0, backwards.

func (p *projection) decisionParts(from, to int) []func() {
	var parts []func()
	for i := from; i < to; i++ {
		parts = append(parts, func() {
			d := p.l.Decisions[len(p.l.Decisions)-1-i]
			p.decisions = append(p.decisions,
				Decision{Decision: clipped(d.Decision, textSize), Rationale: clipped(d.Rationale, reasonSize),
					Timestamp: seconds(d.Timestamp), Extra: small(d.Extra)})
		})
	}
	return parts
}

func (p *projection) approachParts(from, to int) []func() {
	var parts []func()
	for i := from; i < to; i++ {
		parts = append(parts, func() {
			a := p.l.FailedApproaches[len(p.l.FailedApproaches)-1-i]
			p.approaches = append(p.approaches,
				FailedApproach{What: clipped(a.What, textSize), Outcome: clipped(a.Outcome, reasonSize),
					Why: clipped(a.Why, reasonSize), Extra: small(a.Extra)})
		})
	}
	return parts
}

// stepParts shows first the steps and then the files of each.
func (p *projection) stepParts(from, to int) []func() {
	var texts, files []func()
	for i := from; i < to; i++ {
		s := &p.l.CompletedSteps[len(p.l.CompletedSteps)-1-i]
		texts = append(texts, func() {
			p.steps = append(p.steps, Step{Step: clipped(s.Step, textSize), Timestamp: seconds(s.Timestamp),
				RunAgain: s.RunAgain,
				Extra:    small(s.Extra)})
		})
		for _, path := range s.FilesCreated {
			files = append(files, p.filePart(path, func() *[]string { return &p.steps[i].FilesCreated })...)
		}
		for _, path := range s.FilesModified {
			files = append(files, p.filePart(path, func() *[]string { return &p.steps[i].FilesModified })...)
		}
	}
	return append(texts, files...)
}

// filePart lists a path with its hash, unless the path is not fit to be shown.
func (p *projection) filePart(path string, list func() *[]string) []func() {
	if clipped(path, pathSize) != path || path == "" {
		return nil
	}
	return []func(){func() {
		to := list()
		*to = append((*to)[:len(*to):len(*to)], path)
		if mark := p.hashes[path].mark(); mark != "" {
			p.listed()[path] = mark
		}
	}}
}

func (p *projection) listed() map[string]string {
	if p.c.Files == nil {
		p.c.Files = &Hashes{}
	}
	if p.c.Files.Listed == nil {
		p.c.Files.Listed = make(map[string]string)
	}
	return p.c.Files.Listed
}

// stateParts shows what identifies the files as a whole; what is too long to be
// an ID is left out.
func (p *projection) stateParts() []func() {
	workspace, snapshot := clipped(p.l.Workspace, floorText), clipped(p.l.Snapshot, floorText)
	if workspace != p.l.Workspace {
		workspace = ""
	}
	if snapshot != p.l.Snapshot {
		snapshot = ""
	}
	if workspace == "" && snapshot == "" {
		return nil
	}
	return []func(){func() {
		if p.c.Files == nil {
			p.c.Files = &Hashes{}
		}
		p.c.Files.Workspace, p.c.Files.Snapshot = workspace, snapshot
	}}
}

func (p *projection) agentParts() []func() {
	var parts []func()
	for _, agent := range slices.Backward(p.l.Metadata.PreviousAgents) {
		parts = append(parts, func() { p.agents = append(p.agents, clipped(agent, floorText)) })
	}
	return parts
}

// otherParts are the fields of other programs.
func (p *projection) otherParts() []func() {
	var parts []func()
	for _, from := range []struct {
		extra Extra
		to    *Extra
	}{{p.l.Metadata.Extra, &p.c.Metadata.Extra}, {p.l.Verification.Extra, &p.c.Verification.Extra},
		{p.l.Extra, &p.c.Extra}} {
		for _, name := range slices.Sorted(maps.Keys(from.extra)) {
			raw := from.extra[name]
			if !json.Valid(raw) {
				continue
			}
			parts = append(parts, func() {
				grown := maps.Clone(*from.to)
				if grown == nil {
					grown = make(Extra)
				}
				grown[name] = jsontree.Compact(raw)
				*from.to = grown
				p.others++
			})
		}
	}
	return parts
}

// checkpoint is what the projection has grown to, with the counts of the rest.
func (p *projection) checkpoint() Checkpoint {
	c := p.c
	c.Decisions = reversed(p.decisions)
	c.FailedApproaches = reversed(p.approaches)
	c.CompletedSteps = reversed(p.steps)
	c.Metadata.PreviousAgents = reversed(p.agents)
	for _, i := range slices.Sorted(maps.Keys(p.checks)) {
		c.Verification.Results = append(c.Verification.Results, p.checks[i])
	}
	c.Files = p.restHashes()
	l := p.l
	cut := Cut{
		PendingSteps:     len(l.PendingSteps) - len(c.PendingSteps),
		CompletedSteps:   len(l.CompletedSteps) - len(c.CompletedSteps),
		Files:            p.touched - p.listedPaths(),
		Decisions:        len(l.Decisions) - len(c.Decisions),
		FailedApproaches: len(l.FailedApproaches) - len(c.FailedApproaches),
		Blockers:         len(l.Blockers) - len(c.Blockers),
		NotAllowed:       len(l.NotAllowed) - len(c.NotAllowed),
		Results:          len(p.results) - len(c.Verification.Results),
		PreviousAgents:   len(l.Metadata.PreviousAgents) - len(c.Metadata.PreviousAgents),
		Other:            p.otherFields - p.others,
	}
	if l.CurrentStep != nil && c.CurrentStep == nil {
		cut.CurrentStep = 1
	}
	if cut != (Cut{}) {
		c.Cut = &cut
	}
	return c
}

// reversed is a copy, nil for nothing.
func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// restHashes are the shown hashes with a count of the others.
func (p *projection) restHashes() *Hashes {
	h := Hashes{}
	if p.c.Files != nil {
		h = *p.c.Files
		h.Listed = maps.Clone(h.Listed)
	}
	h.Rest = len(p.hashes) - len(h.Listed)
	if h.Rest > 0 {
		h.RestDigest = unsealed
	}
	if h.Rest == 0 && h.Workspace == "" && h.Snapshot == "" && len(h.Listed) == 0 {
		return nil
	}
	return &h
}

// unsealed stands for a digest, which is computed once at the end.
const unsealed = "0000000000000000"

func (p *projection) sealed(c Checkpoint) Checkpoint {
	if c.Files == nil || c.Files.Rest == 0 {
		return c
	}
	rest := make([]FileEntry, 0, c.Files.Rest)
	for path, f := range p.hashes {
		if _, listed := c.Files.Listed[path]; !listed {
			rest = append(rest, f)
		}
	}
	c.Files.RestDigest = Digest(rest)[:len(unsealed)]
	return c
}

// listedPaths counts the touched files that the shown steps name.
func (p *projection) listedPaths() int {
	seen := make(map[string]bool)
	for _, s := range p.steps {
		for _, path := range s.FilesCreated {
			seen[path] = true
		}
		for _, path := range s.FilesModified {
			seen[path] = true
		}
	}
	return len(seen)
}
