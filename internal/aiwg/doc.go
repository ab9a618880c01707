// Package aiwg is the folder of the packages that read, write and serve the layout of
// a .aiwg folder, in which other programs keep task trees and loops.
//
// An import or export begins in package tree, which reads and writes task trees and
// calls package loops for the documents of loops. Package loopimport imports a single
// loop from its document, corrected by package loops, so that it can be resumed.
// Package rpc serves the daemon's JSON-RPC methods on a Unix socket, with the records
// of package tree.
package aiwg
