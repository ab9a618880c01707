// Package gitdiff lists the files that changed between two versions in a git repository:
// commits, the index, and the working tree. It runs the git program and changes nothing:
// it refreshes no index, fetches nothing, and starts no diff or text conversion program
// that the repository configures.
package gitdiff
