package handoff

import (
	"fmt"
	"io/fs"
	"time"
)

// ContractIn resolves a reference in a text.
func ContractIn(data []byte, ref string) (*Contract, error) { return contractIn("prd.json", data, ref) }

// Clip shortens a text as long ones are in checkpoints.
func Clip(text string) string { return clipped(text, partialSize) }

// SettledStamp returns the stamp of a file that was read at a time.
func SettledStamp(info fs.FileInfo, read time.Time) string { return settledStamp(info, read) }

// ChangeTime returns when the file system changed a file, and whether it knows.
func ChangeTime(info fs.FileInfo) (time.Time, bool) { return changeTime(info) }

// WronglyHopeless returns an entry that a projection of a ledger passes over although it fits.
func WronglyHopeless(l Ledger, limit int) (found string) {
	p := newProjection(&l, limit)
	p.reserve()
	for at := range p.each() {
		if p.misses >= maxMisses {
			break
		}
		if p.levels[at] != hidden || at.kind == file && p.levels[part{kind: step, index: at.index}] == hidden {
			continue
		}
		for _, to := range []level{brief, full} {
			p.levels[at] = to
			c, size, cut := p.checkpoint(), p.size, p.cut
			if p.hopeless(at) && !p.tooLarge(&c) {
				return fmt.Sprintf("%+v, %d bytes", at, p.size)
			}
			p.size, p.cut, p.levels[at] = size, cut, hidden
		}
		p.add(at)
	}
	return ""
}
