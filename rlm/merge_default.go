package rlm

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

// promptVersion is the version of the form of requests of new trees. Since version 2 the documents
// are before the prompt, and repeated text is marked; trees without a version have version 1.
const promptVersion = 2

// hasMarkedParts reports whether requests have the form of version 2.
func (c *Config) hasMarkedParts() bool { return c.PromptVersion >= 2 }

// useMerge sets the merges that are not set. They are kept with the tree.
func (c *Config) useMerge() {
	if c.Merge == "" && c.Batch {
		c.Merge, c.FileMerge = MergeConcatenate, cmp.Or(c.FileMerge, c.mergeOfParts())
	}
	if c.Merge == "" && c.Samples > 1 && c.SubModel != extract.Name { // answers to one question, not to parts of it
		c.Merge = MergeVote
	}
	if c.Merge == "" {
		c.Merge = c.mergeOfParts()
	}
}

// mergeOfParts returns the merge for the parts of a text. It depends on the models that answer:
// only one that generates text can write one answer from several.
func (c *Config) mergeOfParts() string {
	switch {
	case c.SubModel == extract.Name:
		return MergeUnion
	case isProgram(c.SubModel), isProgram(c.Model), c.Model == extract.Name:
		return MergeConcatenate
	}
	return MergeSummarize
}

// programScheme begins the names of programs as models, judges and tools.
const programScheme = "exec:"

// isProgram reports whether a model, or the first one of a chain, is a program.
func isProgram(name string) bool { return strings.HasPrefix(model.ChainNames(name)[0], programScheme) }

// defaultMerge returns the merge of the parts of a task for which the configuration names none.
func (c *Config) defaultMerge() string {
	if !c.hasMarkedParts() {
		return MergeUnion
	}
	return c.mergeOfParts()
}

// summarizes reports whether a model writes one text from several by default or as configured.
func (c *Config) summarizes() bool { return c.Merge == MergeSummarize || c.FileMerge == MergeSummarize }

// mergesByProgram reports whether a program merges the results.
func (c *Config) mergesByProgram() bool { return strings.HasPrefix(c.Merge, MergeProgram) }

// readsText reports whether the programs that answer about parts read the text alone.
func (c *Config) readsText() bool { return c.ExecInput == InputText }

// maxPromptVariable bounds a prompt in a variable of the environment.
const maxPromptVariable = 100_000

// useVersion2 sets what a new tree keeps: the version of its requests, and what programs read.
func (c *Config) useVersion2() {
	c.PromptVersion = promptVersion
	if c.ExecInput == "" && isProgram(c.SubModel) && c.mergesByProgram() {
		c.ExecInput = InputText
	}
}

// checkMerge reports what is wrong with the merge and with what programs read.
func (c *Config) checkMerge(bad func(field, format string, args ...any),
	oneOf func(field, value string, later []string, now ...string)) {
	names := []string{MergeConcatenate, MergeUnion, MergeSummarize, MergeVote, MergeBest}
	oneOf("exec_input", c.ExecInput, nil, InputPrompt, InputText)
	oneOf("file_merge", c.FileMerge, nil, names...)
	if c.readsText() && !isProgram(c.SubModel) {
		bad("exec_input", "text is for programs, and %q is none", c.SubModel)
	}
	if !c.mergesByProgram() {
		oneOf("merge", c.Merge, nil, append(names, MergeProgram+"COMMAND")...)
		return
	}
	checkText(bad, "merge", c.Merge, maxModelNameBytes)
	switch {
	case strings.TrimSpace(strings.TrimPrefix(c.Merge, MergeProgram)) == "":
		bad("merge", "%q names no command", c.Merge)
	case c.SubModel == extract.Name:
		bad("merge", "a program merges answers, and %s only quotes passages", extract.Name)
	case c.Planner == PlannerRepl, c.Planner == PlannerSearch:
		bad("merge", "planner %s gives one answer, so there is nothing to merge", c.Planner)
	}
}

// checkExecInput refuses a prompt that does not fit in a variable of the environment.
func (p *planning) checkExecInput() error {
	if p.cfg.readsText() && len(p.req.Prompt) > maxPromptVariable {
		return invalid(fmt.Sprintf("exec_input: with text the prompt is in a variable of the environment, and its %d bytes "+
			"are more than %d", len(p.req.Prompt), maxPromptVariable), "shorten the prompt, or use --exec-input prompt")
	}
	return nil
}

// MergeCommand returns the name of the program that merges the results, as a model's, or "".
func (c *Config) MergeCommand() string {
	if !c.mergesByProgram() {
		return ""
	}
	return c.Merge
}
