// Package detect finds signs that a change takes away what holds a program to
// its promises: tests deleted or skipped, assertions weakened, validation and
// error handling removed, complaints of tools silenced, features stubbed. It
// compares two versions of the files that changed and returns findings; it knows
// nothing of loops, stores, processes or the file system.
//
// Run reads the changed files one after the other and makes a small model of each
// version (package source). Once all are known, so that what was moved or renamed
// can be found again (match.go), the detectors compare the models: one file for
// each type of regression. What each pattern counts for is in one table (Catalog).
package detect
