package project

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Started is a program or a script that a command starts.
type Started struct {
	// Name is as in the command. Without a separator it is looked up in PATH, unless Script is set:
	// a file that a shell or another interpreter executes.
	Name   string
	Script bool
}

// Starts returns the programs and scripts that a command starts, as far as its text says, and every
// literal word of it. Programs of the shell itself and functions are not returned. moves is set if the
// command changes its folder, so that relative names are not known. The error is one of the syntax.
func Starts(text string) (started []Started, words []string, moves bool, err error) {
	s := &starts{functions: make(map[string]bool)}
	err = s.read(text, 0)
	return s.started, s.words, s.moves, err
}

type starts struct {
	started   []Started
	words     []string
	functions map[string]bool
	moves     bool
}

func (s *starts) read(text string, depth int) error {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil || depth > maxScripts {
		return err
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if f, ok := n.(*syntax.FuncDecl); ok && f.Name != nil {
			s.functions[f.Name.Value] = true
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		cmd, ok := n.(*syntax.CallExpr)
		if !ok || len(cmd.Args) == 0 || err != nil {
			return err == nil
		}
		c := &call{}
		for _, w := range cmd.Args {
			c.words = append(c.words, newWord(text, w))
		}
		err = s.call(c, depth)
		return true
	})
	return err
}

// call adds what a simple command starts.
func (s *starts) call(c *call, depth int) error {
	for _, w := range c.words {
		if w.literal {
			s.words = append(s.words, w.text)
		}
	}
	c = unwrapped(c)
	name := c.at(0)
	s.moves = s.moves || slices.Contains([]string{"cd", "pushd", "popd"}, name.text)
	if !name.literal || name.text == "" || s.functions[name.text] || slices.Contains(builtins(), name.text) {
		if name.text == "." || name.text == "source" {
			s.script(c.at(1))
		}
		return nil
	}
	s.started = append(s.started, Started{Name: name.text})
	shell := slices.Contains(shells(), c.program())
	if w, ok := c.value("-c", "-ec", "-lc", "-euc"); ok && shell {
		if w.literal {
			return s.read(w.text, depth+1)
		}
		return nil
	}
	if !shell && !slices.Contains(interpreters(), c.program()) ||
		c.has("-c", "-m", "-e", "-r", "--eval", "-p", "--print", "--test", "test", "run") {
		return nil
	}
	for _, w := range c.words[1:] {
		if !strings.HasPrefix(w.text, "-") {
			s.script(w)
			return nil
		}
	}
	return nil
}

func (s *starts) script(w word) {
	if w.literal && w.text != "" {
		s.started = append(s.started, Started{Name: w.text, Script: true})
	}
}

// builtins are the commands of the shell itself.
func builtins() []string {
	return []string{".", ":", "[", "[[", "alias", "bg", "break", "cd", "command", "continue", "declare", "dirs", "echo",
		"eval", "exec", "exit", "export", "false", "fg", "getopts", "hash", "help", "jobs", "kill", "let", "local",
		"popd", "printf", "pushd", "pwd", "read", "readonly", "return", "set", "shift", "shopt", "source", "test", "times",
		"trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait"}
}
