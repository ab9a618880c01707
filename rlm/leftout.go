package rlm

import (
	"fmt"

	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/walk"
)

// LeftOut lists the files that were asked for and are not in the context.
type LeftOut struct {
	// Total is their number; a folder that was not read counts as one.
	Total int64 `json:"total"`
	// Kinds counts them by the kind of the reason.
	Kinds map[string]int64 `json:"kinds,omitempty"`
	// Files are some of them.
	Files []SkippedFile `json:"files"`
}

// SkippedFile is a file that was left out.
type SkippedFile struct {
	File string `json:"file"`
	// Kind is the reason in a word, for programs; may be empty.
	Kind string `json:"kind,omitempty"`
	// Why is the reason for people.
	Why string `json:"why"`
}

// leftOut lists at most so many of the files that a pack left out; nil if there are
// none.
func leftOut(m *pack.Manifest, most int) *LeftOut {
	total := m.SkippedTotal()
	if total == 0 {
		return nil
	}
	l := &LeftOut{Total: total, Kinds: m.SkippedKinds, Files: make([]SkippedFile, min(len(m.Skipped), most))}
	for i := range l.Files {
		l.Files[i] = SkippedFile(m.Skipped[i])
	}
	return l
}

// mostBroken bounds the notes on files with errors.
const mostBroken = 20

// brokenFiles returns notes on files of a context whose format has an error.
func brokenFiles(m *pack.Manifest) (notes []string) {
	for _, n := range m.Notes {
		if n.Kind == walk.NoteBroken && len(notes) < mostBroken {
			notes = append(notes, fmt.Sprintf("%s: %s", n.File, n.Text))
		}
	}
	return notes
}
