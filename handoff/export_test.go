package handoff

import (
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
