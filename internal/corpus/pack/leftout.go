package pack

// LeftOut tells, in a result, which of the files that were asked for are not in
// the pack.
type LeftOut struct {
	// Total is how many there are; a folder that was not looked into is one.
	Total int64 `json:"total"`
	// Kinds counts them by the kind of the reason.
	Kinds map[string]int64 `json:"kinds,omitempty"`
	// Files are some of them.
	Files []Skipped `json:"files"`
}

// LeftOut lists at most so many of the files that were left out; nil when none
// was.
func (m *Manifest) LeftOut(most int) *LeftOut {
	total := m.SkippedTotal()
	if total == 0 {
		return nil
	}
	return &LeftOut{Total: total, Kinds: m.SkippedKinds, Files: m.Skipped[:min(len(m.Skipped), most)]}
}
