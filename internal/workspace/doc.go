// Package workspace takes snapshots of a workspace, compares them and restores the files.
//
// A snapshot is a manifest: the sorted list of the folders, files and links of the workspace
// with their permissions, sizes and the SHA-256 of their content. Its [ID] is the SHA-256 of
// that list, so equal workspaces have equal IDs and a snapshot of an unchanged one writes
// nothing. Each content is stored once for all snapshots, in packs: files that are only
// written as a whole.
//
// Files that git ignores are not part of a snapshot, and a restore does not change them;
// files that git tracks are, also if a pattern ignores them. Git is only queried (one
// read-only command for each repository): the user's index, stash, branches, hooks and
// objects are not changed, and nothing of a repository is stored. Without git, or after .git
// was deleted, the same snapshots are made with the .gitignore files read here. Nested
// repositories and submodules are included, with their own rules. Folders named .git and
// .perdure are not read.
//
// A file is read again only if its file system stamp changed, or could not show a change
// (see stamp). Links are stored as links and not followed; every access is confined to the
// workspace, also if folders are replaced by links meanwhile.
//
// Crashes: a manifest gets its name only after everything it refers to is durable, so there
// are only complete snapshots. An interrupted restore can be run again, with the same
// result.
//
// Not stored: owners, times, extended attributes, and hard links, which become separate
// files when they are restored.
//
// Package diff writes the unified diff of two versions of a file that a comparison found.
package workspace
