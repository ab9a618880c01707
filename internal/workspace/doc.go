// Package workspace takes snapshots of a working tree, compares them and puts
// the files back as they were.
//
// A snapshot is a manifest: the sorted list of the folders, files and links of
// the workspace with their permissions, sizes and the SHA-256 of what they
// hold. Its [ID] is the SHA-256 of that list, so equal trees have equal IDs and
// an unchanged tree costs no write. Contents stand once, whatever number of
// snapshots has them, in packs: files that are only ever written as a whole.
//
// What git ignores is no part of a snapshot and is never touched by a restore;
// what git tracks is one also if a pattern ignores it. Git itself is only asked
// (one read-only command for each repository): the user's index, stash,
// branches, hooks and objects are never touched, nothing of a repository is
// kept, and without git, or after somebody deleted .git, the same snapshots
// are made with the .gitignore files read here. Nested repositories and
// submodules are descended into, with their own rules. Folders named .git and
// .perdure are never looked into.
//
// A file is read again only when what the file system says of it changed, or
// could not show a change (see stamp). Links are kept as links and never
// followed; every access is confined to the workspace, also against folders
// that are replaced by links meanwhile.
//
// Crashes: a manifest appears under its name only after everything it refers
// to is durable, so there are only whole snapshots. An interrupted restore is
// run again and ends the same.
//
// Not kept: owners, times, extended attributes, and which names are one file
// (hard links become separate files when they are restored).
package workspace
