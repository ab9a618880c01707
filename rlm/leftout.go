package rlm

import (
	"github.com/perdure/perdure/internal/pack"
)

// maxLeftOut bounds the list of files that were left out.
const maxLeftOut = 100

// LeftOut tells which of the files that were asked for are not in the context.
type LeftOut struct {
	// Total is how many there are, folders that were not looked into among them.
	Total int64 `json:"total"`
	// Kinds counts them by the kind of the reason: ignored, binary, empty,
	// too_large, unreadable, link, special, gone, changed, name.
	Kinds map[string]int64 `json:"kinds,omitempty"`
	// Files are the first 100 of them.
	Files []LeftOutFile `json:"files"`
}

// LeftOutFile is a file that is not in the context.
type LeftOutFile struct {
	File string `json:"file"`
	Kind string `json:"kind,omitempty"`
	// Why is the reason for people.
	Why string `json:"why"`
}

// leftOut returns what a manifest says was left out; nil for nothing.
func leftOut(m *pack.Manifest) *LeftOut {
	total := m.SkippedTotal()
	if total == 0 {
		return nil
	}
	out := &LeftOut{Total: total, Kinds: m.SkippedKinds, Files: []LeftOutFile{}}
	for _, s := range m.Skipped[:min(len(m.Skipped), maxLeftOut)] {
		out.Files = append(out.Files, LeftOutFile{File: s.File, Kind: s.Kind, Why: s.Why})
	}
	return out
}
