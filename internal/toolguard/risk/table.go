package risk

import (
	"slices"
)

// Level is how grave a risk is.
type Level string

// The levels, from the least.
const (
	Low      Level = "low"
	Medium   Level = "medium"
	High     Level = "high"
	Critical Level = "critical"
)

// Answer is what is done about a call.
type Answer string

// The answers, from the mildest.
const (
	// Allow lets it through; Warn does too, and the agent is told a word.
	Allow Answer = "allow"
	Warn  Answer = "warn"
	// Gate refuses it until a person allowed it; Block refuses it.
	Gate  Answer = "gate"
	Block Answer = "block"
)

// stricter orders the answers.
func stricter(a, b Answer) bool {
	order := []Answer{Allow, Warn, Gate, Block}
	return slices.Index(order, a) > slices.Index(order, b)
}

func graver(a, b Level) bool {
	order := []Level{Low, Medium, High, Critical}
	return slices.Index(order, a) > slices.Index(order, b)
}

// Pattern names a rule.
type Pattern string

// The patterns.
const (
	WriteTest       Pattern = "write_test"
	DeleteTest      Pattern = "delete_test"
	WriteGuard      Pattern = "write_configuration"
	WriteOwn        Pattern = "write_perdure"
	WriteOutside    Pattern = "write_outside"
	DeleteFiles     Pattern = "delete_files"
	DeleteTree      Pattern = "delete_tree"
	DeleteAll       Pattern = "delete_everything"
	GitRemove       Pattern = "git_remove"
	DiscardWork     Pattern = "discard_work"
	RewriteHistory  Pattern = "rewrite_history"
	SkipChecks      Pattern = "skip_checks"
	DecideForPerson Pattern = "decide_for_person"
	Unreadable      Pattern = "unreadable_command"
)

// Rule is what is thought of a pattern.
type Rule struct {
	Pattern Pattern `json:"pattern"`
	// What says which calls it is about.
	What   string `json:"what"`
	Level  Level  `json:"risk_level"`
	Answer Answer `json:"answer"`
	// Text is what the agent is told; empty where the call is let through without a
	// word.
	Text string `json:"text,omitempty"`
	// Destructive tells that such a call can destroy what no snapshot or commit
	// holds.
	Destructive bool `json:"destructive,omitempty"`
}

// Table returns the rules.
func Table() []Rule {
	return []Rule{
		{WriteTest, "writing a test, or what tests use", High, Warn,
			"You are about to change a test: a fix of the test itself, or the easy way out? Tests may be corrected and " +
				"added, not weakened, skipped or deleted.", false},
		{DeleteTest, "deleting or moving away a test", High, Warn,
			"You are about to delete a test. A test that is lost is found, and taken back; if it is obsolete, say so with " +
				"your evidence.", true},
		{WriteGuard, "writing the configuration of CI, runners, linters or coverage, or deleting it", High, Warn,
			"This file decides what is checked. Change it only if the task says so.", false},
		{WriteOwn, "writing or deleting files of perdure, or of its hooks at the agent", Critical, Block,
			"This file belongs to the loop that you work in, and is not yours to change.", true},
		{WriteOutside, "writing or deleting outside of the workspace", High, Warn,
			"This is outside of the workspace: no snapshot holds it, and it cannot be taken back.", true},
		{DeleteFiles, "deleting files", Medium, Warn,
			"You are about to delete files: are they yours, and is nothing lost that the task needs?", true},
		{DeleteTree, "deleting folders with all that is in them (rm -r)", High, Warn,
			"You are about to delete whole folders. Name what is not needed any more instead.", true},
		{DeleteAll, "deleting the workspace, the repository, the home folder or the root", Critical, Block,
			"This would delete the workspace or more.", true},
		{GitRemove, "git rm", High, Warn, "You are about to remove files from the repository: are they yours, and is " +
			"nothing lost that the task needs?", true},
		{DiscardWork, "git checkout, restore, reset --hard, clean or stash drop that discard work", Critical, Block,
			"This discards work that is not committed, perhaps of others. Undo your own changes by editing the files.", true},
		{RewriteHistory, "git push --force, branch -D, filter-branch, update-ref -d, reflog expire, gc --prune=now",
			Critical, Block,
			"This rewrites or removes history that others may need.", true},
		{SkipChecks, "commit --no-verify and other ways past hooks", High, Warn,
			"The hooks are there to be run: mend what they find.", false},
		{DecideForPerson, "answering gates of perdure, resuming or ending its loops, marking false alarms, killing it",
			Critical, Gate,
			"A person decides that. Say in your answer what you need and why.", false},
		{Unreadable, "a command line that cannot be read as one of a shell, or that hides which command it is", Medium, Warn,
			"What this does cannot be read before it runs. Name the command and its files plainly.", false},
	}
}

// rule returns the row of a pattern.
func rule(p Pattern) Rule {
	all := Table()
	i := slices.IndexFunc(all, func(r Rule) bool { return r.Pattern == p })
	return all[i]
}
