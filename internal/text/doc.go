// Package text is the folder of the packages that read and write text.
//
// Reading: jsontree parses JSON with positions, jsonc edits JSON with comments, yamltext reads YAML within limits,
// sse reads streams of server-sent events, resettime finds when a limit ends, and lazyregexp compiles regular
// expressions when they are first used. Writing: clip shortens text, human formats
// numbers and times, nearest finds the known word for the hint of an error, and
// limitedtemplate executes templates of other people within limits.
//
// Searching: textindex cuts text into passages, indexes their words and ranks them.
// Comparing: volatile finds the parts of names that differ from run to run.
package text
