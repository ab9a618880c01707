// Package gitdiff reads what changed between two versions of files that git
// knows: commits, the index, and the files as they are. It asks the git program
// and changes nothing: no index is refreshed, nothing is fetched, and no program
// is started that the repository's settings name for showing differences.
package gitdiff
