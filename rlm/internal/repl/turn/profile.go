package turn

import (
	"cmp"
	"slices"
	"strings"
)

// Profile is the form of the conversation: the instructions, and how output is shown. It is
// pinned for a tree by its version, so that a tree that is taken up later makes the same
// requests.
type Profile struct {
	// Version names the profile with its version: "native-2026-11".
	Version string
	tags    []string // of the blocks that are run
	// tail is the share of the shown output that is its end.
	tail   int
	finish func(language) string
	// repeats is set if a message repeats the code before its output.
	repeats bool
	// wide is set if replies are read with all forms of code that models write, names stay as the code
	// bound them, and lists of names are bounded.
	wide bool
	// hostTools is set if the functions for the files of the context are described.
	hostTools bool
	// advises is set if the instructions say how to use sub-calls.
	advises bool
	// questionLast is set if the first message ends with the question, so that the messages of two
	// questions about the same context begin with the same bytes.
	questionLast bool
}

// MaxShown is how many characters of the output of a block the model is shown.
const MaxShown = 20_000

// Names of the profiles: each stands for its newest version.
const (
	Native    = "native"
	Reference = "reference"
	Paper     = "paper"
)

// profiles lists the profiles, the newest version of each first. A version that was released is
// not changed any more.
func profiles() []Profile {
	fences := []string{"repl", "python", "py", "starlark", ""}
	return []Profile{
		{Version: Native + "-2026-12", tags: fences, tail: MaxShown / 4, finish: finishNative, hostTools: true,
			advises: true, questionLast: true, wide: true},
		{Version: Reference + "-2026-12", tags: []string{"repl"}, finish: finishByAnswer, advises: true,
			questionLast: true, wide: true},
		{Version: Paper + "-2026-12", tags: []string{"repl"}, finish: finishInText, repeats: true, advises: true,
			questionLast: true, wide: true},
		{Version: Native + "-2026-11", tags: fences, tail: MaxShown / 4, finish: finishNative, hostTools: true},
		{Version: Reference + "-2026-06", tags: []string{"repl"}, finish: finishByAnswer},
		{Version: Paper + "-2026-01", tags: []string{"repl"}, finish: finishInText, repeats: true},
	}
}

// KeepsNames reports whether the names of functions that only this program has stay as the code binds
// them, and the variable answer is read at the end of a block.
func (p *Profile) KeepsNames() bool { return p.wide }

// Find returns the profile with a name or a version.
func Find(name string) (Profile, bool) {
	name = cmp.Or(name, Native)
	all := profiles()
	at := slices.IndexFunc(all, func(p Profile) bool {
		return p.Version == name || strings.HasPrefix(p.Version, name+"-2")
	})
	if at < 0 {
		return Profile{}, false
	}
	return all[at], true
}

// Names lists the names of the profiles.
func Names() []string { return []string{Native, Reference, Paper} }

// language is the language of the REPL as the instructions name it.
type language string

// Facts are what the instructions and the first message say of a run.
type Facts struct {
	// Question is what is asked; empty if the context says it.
	Question string
	// System are instructions of the user; may be empty.
	System string
	// Language is the language of the REPL: "Python" or "Starlark".
	Language string
	// Kind is what the variable context is: "string" or "dictionary", empty without context.
	Kind string
	// Bytes is its size, Files are the names of its files with their sizes; MoreFiles counts
	// those that are not listed.
	Bytes     int64
	Files     []File
	MoreFiles int
	// Preview is how the context begins.
	Preview string
	// Turns is the most replies, SubCallBytes the longest prompt that a sub-call should have.
	Turns        int
	SubCallBytes int64
	// Models are the names of sub-models that the code can name.
	Models []string
	// Tools are the functions of the user.
	Tools []Tool
	// Recursive is set if rlm_query gives a REPL of its own.
	Recursive bool
}

// Tool is a function that runs a program of the user.
type Tool struct {
	Name string
	// Parameters are the names of its arguments, Schema is the JSON Schema of them; empty if they
	// are not known.
	Parameters          []string
	Schema, Description string
}

// File is a file of the context.
type File struct {
	Name  string
	Bytes int64
}

// Done is what a turn did, for the model.
type Done struct {
	Outcomes []Outcome
	// Notes say what of the reply was not run or does not count.
	Notes []string
	// Vars are the names of the variables.
	Vars []string
	// Most is how many characters of each output are shown: 0 for as many as the profile shows, [Whole]
	// for all. Where is the expression of the language that has the whole message; it may be empty.
	Most  int
	Where string
}

// Outcome is what a block did, for the model.
type Outcome struct {
	Code string
	// Output is what it printed, OutputBytes the length of the whole.
	Output      string
	OutputBytes int64
	// Failure is the exception that ended it, empty if it ran to its end.
	Failure string
	// Bound are the variables that it had set before its exception, Calls the sub-calls that
	// had finished.
	Bound []string
	Calls int
	// Note says what of the block does not count; may be empty.
	Note string
}
