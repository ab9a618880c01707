package project

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// HiddenStatus says why a command ends with success whatever its checks find: a pipe into a
// program that only formats, or a last command that always succeeds. It is empty for others.
func HiddenStatus(command string) string {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) == 0 || strings.Contains(command, "pipefail") {
		return ""
	}
	last := file.Stmts[len(file.Stmts)-1]
	if len(file.Stmts) > 1 && always(command, last) {
		return fmt.Sprintf("its exit status is that of %q, which always succeeds", source(command, last))
	}
	return hiding(command, last)
}

// hiding looks at the last statement of a command.
func hiding(text string, stmt *syntax.Stmt) string {
	b, ok := stmt.Cmd.(*syntax.BinaryCmd)
	if !ok {
		return ""
	}
	switch b.Op {
	case syntax.OrStmt:
		if always(text, b.Y) {
			return fmt.Sprintf("%q makes it succeed always", "|| "+source(text, b.Y))
		}
	case syntax.Pipe, syntax.PipeAll:
		if c := callOf(text, b.Y); c != nil && slices.Contains(formatters(), c.program()) {
			return fmt.Sprintf("its exit status is that of %q, not of %q; without the pipe, or with `set -o pipefail` in "+
				"bash, the checks decide", source(text, b.Y), source(text, b.X))
		}
	case syntax.AndStmt:
		return hiding(text, b.Y)
	}
	return ""
}

// always reports whether a statement succeeds always.
func always(text string, stmt *syntax.Stmt) bool {
	c := callOf(text, stmt)
	return c != nil && (slices.Contains([]string{"true", ":", "echo", "printf"}, c.program()) ||
		c.program() == "exit" && c.at(1).text == "0")
}

// callOf returns the simple command of a statement; nil if it is another one.
func callOf(text string, stmt *syntax.Stmt) *call {
	cmd, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(cmd.Args) == 0 {
		return nil
	}
	c := &call{}
	for _, w := range cmd.Args {
		c.words = append(c.words, newWord(text, w))
	}
	return c
}

func source(text string, stmt *syntax.Stmt) string {
	return text[stmt.Pos().Offset():stmt.End().Offset()]
}

// formatters are programs that succeed whatever they read.
func formatters() []string {
	return []string{"tee", "cat", "tail", "head", "less", "more", "sed", "awk", "gawk", "tr", "sort", "uniq", "cut",
		"column", "nl", "fold", "ts", "xcpretty", "xcbeautify", "tap-spec", "tap-dot", "faucet", "pino-pretty", "bunyan",
		"sponge", "jc"}
}
