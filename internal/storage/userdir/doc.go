// Package userdir finds the folders in which perdure keeps the user's own files, as in the
// XDG Base Directory Specification: outside of every project.
//
// Its packages, lowest first: copies keeps the files of stores in one of these folders.
package userdir
