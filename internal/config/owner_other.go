//go:build !unix

package config

import "io/fs"

// ownedByUser returns true: this system reports no owner.
func ownedByUser(fs.FileInfo) bool { return true }
