package handoff

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Limits of a checkpoint's compact JSON, in bytes.
const (
	// DefaultLimit is the limit of a checkpoint in builder-state.json.
	DefaultLimit = 2048
	// MinLimit is enough for the shortened fields that are never left out.
	MinLimit = 1536
)

// The numbers of entries that are shown before parts of lower priority, and the limit of
// completed steps.
const (
	latestEntries = 3
	nextEntries   = 8
	maxSteps      = 10
	maxExtra      = 120 // bytes of unknown fields of an entry
)

// Project returns the checkpoint of a ledger in at most limit bytes of compact JSON (see
// [Checkpoint.Compact]): [DefaultLimit] if limit is 0, at least [MinLimit].
//
// Entries are added in a fixed order until one does not fit: the task and its contract;
// the next action; blockers and what is not allowed; failing checks; the current step
// and the next pending ones; the latest decisions; the latest failed approaches; the
// latest completed steps with their files and hashes; then the history: previous
// agents, the rest of each, other results, fields of other programs. The first four are
// always shown, shortened with "…" if needed. So a larger limit never shows less. Cut
// and Files count the missing entries, Ledger says where they are.
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
			return p.withDigest(p.orWhole(shown, parts, max(limit, MinLimit)))
		}
		shown = c
	}
	return p.withDigest(shown)
}

func tooLarge(c *Checkpoint, limit int) bool {
	e := &encoder{limit: limit}
	e.object(c)
	return e.err != nil || e.over()
}

// orWhole returns the whole ledger if it fits, else shown. It can fit although a part of
// it does not, because the counts of the missing entries need space.
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

// projection is a checkpoint to which entries are added.
type projection struct {
	l       *Ledger
	c       Checkpoint
	results []Result // the last one of each activity
	hashes  map[string]FileEntry
	touched int // the number of paths in the ledger

	// Lists of which the latest entries are shown, the latest first.
	decisions  []Decision
	approaches []FailedApproach
	steps      []Step
	agents     []string

	checks      map[int]Result // by index in results
	others      int            // the number of unknown fields that are shown
	otherFields int
}

// newProjection returns a projection with the fields that are never left out.
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
	c.Phase = Phase(clipped(string(cmp.Or(l.Phase, PhasePlanning)), floorKeyword))
	c.Metadata = Metadata{
		CreatedBy:     clipped(cmp.Or(l.Metadata.CreatedBy, "unknown"), floorAgent),
		LastUpdatedAt: seconds(l.Metadata.LastUpdatedAt),
		Reason:        Reason(clipped(string(cmp.Or(l.Metadata.Reason, ReasonPeriodic)), floorKeyword)),
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

// seconds returns a time in UTC and whole seconds, the zero time for one that JSON
// cannot hold.
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
		Status:   Status(clipped(string(cmp.Or(r.Status, StatusPending)), floorKeyword)),
		RunAt:    seconds(r.RunAt),
		RanBy:    Runner(clipped(string(r.RanBy), floorKeyword)),
		Extra:    small(r.Extra),
	}
}

// small returns the unknown fields of an entry if they are short and valid.
func small(extra Extra) Extra {
	if len(extra) == 0 {
		return nil
	}
	if text, err := jsontree.Marshal(extra, ""); err != nil || len(text) > maxExtra {
		return nil
	}
	return extra
}

// parts returns functions that add the entries, in their order.
func (p *projection) parts() []func() {
	l := p.l
	decisions, approaches, steps := len(l.Decisions), len(l.FailedApproaches), min(len(l.CompletedSteps), maxSteps)
	return slices.Concat(
		p.taskParts(), p.obstacleParts(), p.checkParts(true), p.currentParts(), p.pendingParts(0, nextEntries),
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
}

// taskParts shows the task, its contract and the next action in full.
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

// textParts shows one string after the other; the first one is shown already.
func textParts(list []string, shown *[]string) []func() {
	return parts(0, len(list), func(i int) { *shown = append((*shown)[:i:i], clipped(list[i], textSize)) })
}

// parts returns functions that call show for each number.
func parts(from, to int, show func(int)) []func() {
	var list []func()
	for i := from; i < to; i++ {
		list = append(list, func() { show(i) })
	}
	return list
}

// checkParts shows the checks that failed, or the others.
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
	return parts(from, min(to, len(p.l.PendingSteps)), func(i int) {
		p.c.PendingSteps = append(p.c.PendingSteps, clipped(p.l.PendingSteps[i], textSize))
	})
}

// Decisions, approaches and steps are numbered backwards: the last one is 0.

func (p *projection) decisionParts(from, to int) []func() {
	return parts(from, to, func(i int) {
		d := p.l.Decisions[len(p.l.Decisions)-1-i]
		p.decisions = append(p.decisions,
			Decision{Decision: clipped(d.Decision, textSize), Rationale: clipped(d.Rationale, reasonSize),
				Timestamp: seconds(d.Timestamp), Extra: small(d.Extra)})
	})
}

func (p *projection) approachParts(from, to int) []func() {
	return parts(from, to, func(i int) {
		a := p.l.FailedApproaches[len(p.l.FailedApproaches)-1-i]
		p.approaches = append(p.approaches,
			FailedApproach{What: clipped(a.What, textSize), Outcome: clipped(a.Outcome, reasonSize),
				Why: clipped(a.Why, reasonSize), Extra: small(a.Extra)})
	})
}

// stepParts shows first the steps and then the files of each.
func (p *projection) stepParts(from, to int) []func() {
	var steps, files []func()
	for i := from; i < to; i++ {
		s := &p.l.CompletedSteps[len(p.l.CompletedSteps)-1-i]
		steps = append(steps, func() {
			p.steps = append(p.steps, Step{Step: clipped(s.Step, textSize), Timestamp: seconds(s.Timestamp),
				RunAgain: s.RunAgain, Extra: small(s.Extra)})
		})
		for _, path := range s.FilesCreated {
			files = append(files, p.filePart(path, func() *[]string { return &p.steps[i].FilesCreated })...)
		}
		for _, path := range s.FilesModified {
			files = append(files, p.filePart(path, func() *[]string { return &p.steps[i].FilesModified })...)
		}
	}
	return append(steps, files...)
}

// filePart shows a path with its hash, unless the path is too long or not valid text.
func (p *projection) filePart(path string, list func() *[]string) []func() {
	if clipped(path, pathSize) != path || path == "" {
		return nil
	}
	return []func(){func() {
		to := list()
		*to = append((*to)[:len(*to):len(*to)], path)
		if mark := p.hashes[path].mark(); mark != "" {
			p.files().Listed[path] = mark
		}
	}}
}

func (p *projection) files() *Hashes {
	if p.c.Files == nil {
		p.c.Files = &Hashes{Listed: make(map[string]string)}
	}
	return p.c.Files
}

// stateParts shows the IDs of the workspace and its snapshot, unless they are too long.
func (p *projection) stateParts() []func() {
	fitting := func(id string) string {
		if clipped(id, floorText) != id {
			return ""
		}
		return id
	}
	workspace, snapshot := fitting(p.l.Workspace), fitting(p.l.Snapshot)
	if workspace == "" && snapshot == "" {
		return nil
	}
	return []func(){func() { p.files().Workspace, p.files().Snapshot = workspace, snapshot }}
}

func (p *projection) agentParts() []func() {
	agents := p.l.Metadata.PreviousAgents
	return parts(0, len(agents),
		func(i int) { p.agents = append(p.agents, clipped(agents[len(agents)-1-i], floorText)) })
}

// otherParts shows the fields of other programs.
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

// checkpoint returns the checkpoint with the counts of the missing entries.
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
		Files:            p.touched - len((&Work{CompletedSteps: p.steps}).Touched()),
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

// reversed returns a reversed copy, nil for nil.
func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// restHashes returns the shown hashes with the number of the others.
func (p *projection) restHashes() *Hashes {
	h := Hashes{}
	if p.c.Files != nil {
		h = *p.c.Files
		h.Listed = maps.Clone(h.Listed)
	}
	h.Rest = len(p.hashes) - len(h.Listed)
	if h.Rest > 0 {
		h.RestDigest = noDigest
	}
	if h.Rest == 0 && h.Workspace == "" && h.Snapshot == "" && len(h.Listed) == 0 {
		return nil
	}
	return &h
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
			rest = append(rest, f)
		}
	}
	c.Files.RestDigest = Digest(rest)[:len(noDigest)]
	return c
}
