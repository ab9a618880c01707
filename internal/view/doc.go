// Package view is the folder of the packages that show trees and loops.
//
// Package outline reads the tasks of a large tree with few queries, for the API.
// Package status formats states, usage and gates for all views, and turns what the code of
// a REPL did. The views are watch (full screen), report (Markdown or HTML of a tree), loop
// (the terminal, a report and the JSON document of a loop), graph (Mermaid and Graphviz)
// and export (JSON Lines of everything the store has of a tree).
package view
