// Package gitdiff lists the files that changed between two versions in a git repository:
// commits, the index, and the working tree. It runs the git program and changes nothing:
// it refreshes no index, fetches nothing, and starts no program that settings or attributes
// of the repository name. Files whose content passes through a filter of git are compared
// as they are on disk.
package gitdiff
