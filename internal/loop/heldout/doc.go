// Package heldout keeps the second check of a loop, which its agent never sees: the command and its
// results, in a folder of the user outside of the workspace and of the store. The store has only the
// name of that folder, because an agent can read the store.
package heldout
