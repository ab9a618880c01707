// Package decider finds the changed files that decide what a check runs without being run or
// tested themselves: which interpreter, loader, libraries and build it uses, and which tests it
// collects. With such a change a check can pass although the code is as before.
//
// table.yaml lists the files by ecosystem. Besides, a new file counts that is loaded instead of
// another one (a module requests.py in a project that uses requests, see shadow.go), and a test
// that is moved to where its runner does not look (see uncollected.go). A manifest that only
// gains dependencies of a registry is shown, and used as it is (see dependencies.go).
package decider
