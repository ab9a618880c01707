// Package storage is the folder of the packages that keep data on disk.
//
// The lowest are filelock, which locks files, and atomicfile, which replaces them as a
// whole. Package sqldb opens the database, SQLite or PostgreSQL. Long values are
// stored outside of the rows that name them: as files by package blob, or in the
// database by package dbblob; package compress shortens those that stay in SQLite.
// The store uses eta to estimate the remaining time of a tree, gc to remove trees and values
// without references, and invariant to check the conditions that hold after every
// transaction. Package chain computes the hash chain of the events of a tree; heads
// records its heads outside of the store.
//
// Package userdir finds the folders of the user's own files, which are outside of every
// store.
package storage
