// Package machine records what a check uses of the machine outside of the workspace: the
// PATH with the programs of the check, and the caches of downloaded packages. An agent has
// the user's rights, so it can change both. A later check uses the recorded PATH, and no
// cache of which recorded files were changed.
package machine
