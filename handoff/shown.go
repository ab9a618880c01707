package handoff

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// checkpoint returns the checkpoint with the chosen parts and the counts of the missing
// entries.
func (p *projection) checkpoint() Checkpoint {
	l := p.l
	c := Checkpoint{SchemaVersion: SchemaVersion, Ledger: clipped(l.Ref, floorText)}
	c.Phase = Phase(clipped(string(cmp.Or(l.Phase, PhasePlanning)), floorKeyword))
	c.Metadata = Metadata{
		CreatedBy:     clipped(cmp.Or(l.Metadata.CreatedBy, "unknown"), floorAgent),
		LastUpdatedAt: seconds(l.Metadata.LastUpdatedAt),
		Reason:        Reason(clipped(string(cmp.Or(l.Metadata.Reason, ReasonPeriodic)), floorKeyword)),
	}
	shown := p.shown()
	p.addTexts(&c, &shown)
	p.addLists(&c, &shown)
	p.addFiles(&c, &shown)
	for _, at := range shown[other] {
		p.others[at.index].add(&c)
	}
	p.count(&c, len(shown[other]))
	return c
}

// shown returns the chosen parts of each kind in the order of their numbers.
func (p *projection) shown() (list [kinds][]part) {
	for at, to := range p.levels {
		if to != hidden {
			list[at.kind] = append(list[at.kind], at)
		}
	}
	for _, parts := range list {
		slices.SortFunc(parts, func(a, b part) int {
			return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.sub, b.sub))
		})
	}
	return list
}

// clip returns the text of a part in the length in which it is shown.
func (p *projection) clip(at part, text string) string {
	limits := [...]size{brief: briefText, short: shortText, full: textSize}
	switch at.kind {
	case taskID:
		limits = [...]size{brief: floorID, short: floorID, full: textSize}
	case contractRef:
		limits = [...]size{brief: floorRef, short: floorRef, full: textSize}
	case nextAction:
		limits = [...]size{brief: floorAction, short: floorAction, full: actionSize}
	case partialWork:
		limits = [...]size{brief: briefPartial, short: shortPartial, full: partialSize}
	case agent:
		limits = [...]size{brief: floorText, short: floorText, full: floorText}
	default:
	}
	return clipped(text, limits[p.levels[at]])
}

// reason returns a reason that belongs to a part.
func (p *projection) reason(at part, text string) string {
	return clipped(text, [...]size{brief: briefReason, short: shortReason, full: reasonSize}[p.levels[at]])
}

// extra returns the unknown fields of a part that is shown in full, if they are short and
// valid.
func (p *projection) extra(at part, extra Extra) Extra {
	if p.levels[at] != full || len(extra) == 0 {
		return nil
	}
	if text, err := jsontree.Marshal(extra, ""); err != nil || len(text) > maxExtra {
		return nil
	}
	return extra
}

// addTexts adds the parts that are a single text, and the current step.
func (p *projection) addTexts(c *Checkpoint, shown *[kinds][]part) {
	l := p.l
	for _, at := range shown[taskID] {
		c.TaskID = p.clip(at, l.TaskID)
	}
	for _, at := range shown[contractRef] {
		c.Verification.ContractRef = p.clip(at, l.Verification.ContractRef)
	}
	for _, at := range shown[nextAction] {
		c.NextAction = p.clip(at, l.NextAction)
	}
	for _, at := range shown[failure] {
		c.Error = p.clip(at, l.Error)
	}
	for _, at := range shown[current] {
		step := l.CurrentStep
		c.CurrentStep = &CurrentStep{Description: p.clip(at, step.Description), StartedAt: seconds(step.StartedAt),
			Extra: p.extra(at, step.Extra)}
		for _, at := range shown[partialWork] {
			c.CurrentStep.PartialWork = p.clip(at, step.PartialWork)
		}
	}
}

// addLists adds the entries of the lists. Those that grow are numbered from their end.
func (p *projection) addLists(c *Checkpoint, shown *[kinds][]part) {
	l := p.l
	for _, at := range shown[blocker] {
		c.Blockers = append(c.Blockers, p.clip(at, l.Blockers[at.index]))
	}
	for _, at := range shown[notAllowed] {
		c.NotAllowed = append(c.NotAllowed, p.clip(at, l.NotAllowed[at.index]))
	}
	for _, at := range shown[pending] {
		c.PendingSteps = append(c.PendingSteps, p.clip(at, l.PendingSteps[at.index]))
	}
	for _, at := range shown[check] {
		r := p.results[at.index]
		c.Verification.Results = append(c.Verification.Results, Result{Activity: p.clip(at, r.Activity),
			Status: Status(clipped(string(cmp.Or(r.Status, StatusPending)), floorKeyword)), RunAt: seconds(r.RunAt),
			RanBy: Runner(clipped(string(r.RanBy), floorKeyword)), Extra: p.extra(at, r.Extra)})
	}
	for _, at := range slices.Backward(shown[decision]) {
		c.Decisions = append(c.Decisions, p.decision(at))
	}
	for _, at := range slices.Backward(shown[approach]) {
		c.FailedApproaches = append(c.FailedApproaches, p.approach(at))
	}
	for _, at := range slices.Backward(shown[agent]) {
		agents := l.Metadata.PreviousAgents
		c.Metadata.PreviousAgents = append(c.Metadata.PreviousAgents, p.clip(at, agents[len(agents)-1-at.index]))
	}
	for _, at := range slices.Backward(shown[step]) {
		c.CompletedSteps = append(c.CompletedSteps, p.step(at))
	}
}

// decision returns a decision as it is shown.
func (p *projection) decision(at part) Decision {
	d := &p.l.Decisions[len(p.l.Decisions)-1-at.index]
	return Decision{Decision: p.clip(at, d.Decision), Rationale: p.reason(at, d.Rationale),
		Timestamp: seconds(d.Timestamp), Extra: p.extra(at, d.Extra)}
}

// approach returns a failed approach as it is shown.
func (p *projection) approach(at part) FailedApproach {
	a := &p.l.FailedApproaches[len(p.l.FailedApproaches)-1-at.index]
	return FailedApproach{What: p.clip(at, a.What), Outcome: p.reason(at, a.Outcome), Why: p.reason(at, a.Why),
		Extra: p.extra(at, a.Extra)}
}

// step returns a completed step as it is shown, without its files.
func (p *projection) step(at part) Step {
	s := p.backwards(at.index)
	return Step{Step: p.clip(at, s.Step), Timestamp: seconds(s.Timestamp), RunAgain: s.RunAgain,
		Extra: p.extra(at, s.Extra)}
}

// addFiles adds the shown files of the shown steps, with their hashes, and the digest of the
// others.
func (p *projection) addFiles(c *Checkpoint, shown *[kinds][]part) {
	h := &Hashes{Listed: make(map[string]string)}
	place := make(map[int]int) // of a shown step in the list
	for i, at := range shown[step] {
		place[at.index] = len(shown[step]) - 1 - i
	}
	for _, at := range shown[file] {
		i, path := place[at.index], p.path(at)
		list := &c.CompletedSteps[i].FilesCreated
		if at.sub >= len(p.backwards(at.index).FilesCreated) {
			list = &c.CompletedSteps[i].FilesModified
		}
		*list = append(*list, path)
		if entry := p.hashes[path]; entry != nil && entry.mark() != "" {
			h.Listed[path] = entry.mark()
		}
	}
	for range shown[stateIDs] {
		h.Workspace, h.Snapshot = fitting(p.l.Workspace), fitting(p.l.Snapshot)
	}
	if h.Rest = len(p.hashes) - len(h.Listed); h.Rest > 0 {
		h.RestDigest = noDigest
	}
	if h.Rest > 0 || h.Workspace != "" || h.Snapshot != "" || len(h.Listed) > 0 {
		c.Files = h
	}
}

// path returns the path of a file of a step.
func (p *projection) path(at part) string {
	s := p.backwards(at.index)
	if created := len(s.FilesCreated); at.sub >= created {
		return s.FilesModified[at.sub-created]
	}
	return s.FilesCreated[at.sub]
}

// fitting returns an ID, empty if it is too long.
func fitting(id string) string {
	if clipped(id, floorText) != id {
		return ""
	}
	return id
}

// add adds the field to a checkpoint.
func (o *otherField) add(c *Checkpoint) {
	to := o.in(c)
	grown := maps.Clone(*to)
	if grown == nil {
		grown = make(Extra)
	}
	grown[o.name] = o.raw
	*to = grown
}

// count counts the entries of the ledger that the checkpoint does not show.
func (p *projection) count(c *Checkpoint, others int) {
	l := p.l
	cut := Cut{
		PendingSteps:     len(l.PendingSteps) - len(c.PendingSteps),
		CompletedSteps:   len(l.CompletedSteps) - len(c.CompletedSteps),
		Files:            p.touched - len(c.Touched()),
		Decisions:        len(l.Decisions) - len(c.Decisions),
		FailedApproaches: len(l.FailedApproaches) - len(c.FailedApproaches),
		Blockers:         len(l.Blockers) - len(c.Blockers),
		NotAllowed:       len(l.NotAllowed) - len(c.NotAllowed),
		Results:          len(p.results) - len(c.Verification.Results),
		PreviousAgents:   len(l.Metadata.PreviousAgents) - len(c.Metadata.PreviousAgents),
		Other:            len(p.others) + p.invalid - others,
	}
	if l.CurrentStep != nil && c.CurrentStep == nil {
		cut.CurrentStep = 1
	}
	if cut != (Cut{}) {
		c.Cut = &cut
	}
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
