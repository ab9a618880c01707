package project

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Programs returns the sorted names of the programs that a command runs, as far as its text
// says: those it names, and those that their tool chain usually runs. For a command whose
// tool chain is not known (make, a script) these are the programs of all.
func Programs(text string) []string {
	named := []string{"sh"}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err == nil {
		syntax.Walk(file, func(n syntax.Node) bool {
			c, ok := n.(*syntax.CallExpr)
			if !ok {
				return true
			}
			for i, w := range c.Args {
				word := newWord(text, w)
				if word.literal && (i == 0 || chainOf(word.text) != nil) && !strings.Contains(word.text, "/") {
					named = append(named, word.text)
				}
			}
			return true
		})
	}
	all := slices.Clone(named)
	for _, name := range named {
		all = append(all, chainOf(name)...)
	}
	if len(all) == len(named) {
		for _, chain := range chains() {
			all = append(all, chain...)
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == "" || strings.ContainsAny(name, "\x00*") })
	slices.Sort(all)
	return slices.Compact(all)
}

// chains are the programs of tool chains.
func chains() [][]string {
	return [][]string{
		{"go", "gotestsum", "gcc", "cc", "git"},
		{"python", "python3", "pytest", "py.test", "py", "coverage", "uv", "poetry", "pipenv", "hatch", "pdm", "tox",
			"nox"},
		{"node", "npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno", "jest", "vitest", "mocha", "tsx"},
		{"cargo", "rustc", "cc"},
		{"java", "javac", "mvn", "mvnd", "gradle"},
		{"ruby", "bundle", "rspec", "rake"},
		{"php", "composer", "phpunit", "pest"},
		{"dotnet"},
		{"gcc", "cc", "g++", "c++", "clang", "make", "cmake", "ninja"},
	}
}

// chainOf returns the programs of the tool chain of a program; nil if it is unknown. That a
// program only builds with make says nothing about what make runs.
func chainOf(name string) []string {
	if name = path.Base(name); name == "make" || name == "git" || name == "cc" {
		return nil
	}
	for _, chain := range chains() {
		if slices.Contains(chain, name) {
			return chain
		}
	}
	return nil
}
