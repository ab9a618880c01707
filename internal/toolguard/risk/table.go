package risk

import "slices"

// Level is how severe a risk is.
type Level string

// Levels, from the lowest.
const (
	Low      Level = "low"
	Medium   Level = "medium"
	High     Level = "high"
	Critical Level = "critical"
)

// Answer is the decision about a call.
type Answer string

// Answers, from the least strict.
const (
	// Allow lets the call through; Warn does too, and the agent receives a warning.
	Allow Answer = "allow"
	Warn  Answer = "warn"
	// Gate refuses the call until a person allows it; Block refuses it.
	Gate  Answer = "gate"
	Block Answer = "block"
)

// stricter reports whether a is stricter than b.
func stricter(a, b Answer) bool {
	order := []Answer{Allow, Warn, Gate, Block}
	return slices.Index(order, a) > slices.Index(order, b)
}

// Pattern is the ID of a rule.
type Pattern string

// Patterns of risks.
const (
	WriteTest       Pattern = "write_test"
	DeleteTest      Pattern = "delete_test"
	WriteGuard      Pattern = "write_configuration"
	WriteValidation Pattern = "write_validation"
	WriteOwn        Pattern = "write_perdure"
	WriteOutside    Pattern = "write_outside"
	DeleteFiles     Pattern = "delete_files"
	DeleteTree      Pattern = "delete_tree"
	DeleteAll       Pattern = "delete_everything"
	GitRemove       Pattern = "git_remove"
	DiscardWork     Pattern = "discard_work"
	StashWork       Pattern = "stash_work"
	RewriteHistory  Pattern = "rewrite_history"
	SkipChecks      Pattern = "skip_checks"
	DestroyExternal Pattern = "destroy_external"
	DecideForPerson Pattern = "decide_for_person"
	Unreadable      Pattern = "unreadable_command"
)

// Rule is the judgement of a pattern.
type Rule struct {
	Pattern Pattern `json:"pattern"`
	// What describes the calls that match.
	What   string `json:"what"`
	Level  Level  `json:"risk_level"`
	Answer Answer `json:"answer"`
	// Text is the message to the agent; empty if the call is allowed without a message.
	Text string `json:"text,omitempty"`
	// Destructive is set if such a call can destroy data that no snapshot or commit holds.
	Destructive bool `json:"destructive,omitempty"`
}

// Table returns all rules.
func Table() []Rule {
	return []Rule{
		{WriteTest, "writing a test or a file that tests use", High, Warn,
			"You are about to change a test. You may correct and add tests; do not weaken, skip or delete them.", false},
		{DeleteTest, "deleting or moving away a test", High, Warn,
			"You are about to delete a test. Removed tests are detected and restored. If the test is obsolete, say so and " +
				"give your evidence.", true},
		{WriteGuard, "writing or deleting the configuration of CI, test runners, linters or coverage", High, Warn,
			"This file configures checks. Change it only if the task says so.", false},
		{WriteValidation, "writing code that validates, by its name", Medium, Warn,
			"You are about to change code that validates. Do not weaken or bypass it so that checks pass.", false},
		{WriteOwn, "writing or deleting files of perdure, or of its hooks in the agent", Critical, Block,
			"This file belongs to the loop that you work in. Do not change it.", true},
		{WriteOutside, "writing or deleting outside of the workspace", High, Warn,
			"This is outside of the workspace: no snapshot contains it, so it cannot be restored.", true},
		{DeleteFiles, "deleting files", Medium, Warn,
			"You are about to delete files. Check that they are yours and that the task does not need them.", true},
		{DeleteTree, "deleting folders with their content (rm -r)", High, Warn,
			"You are about to delete whole folders. Name the files that are no longer needed instead.", true},
		{DeleteAll, "deleting the workspace, the repository, the home folder, a folder of the system or a disk", Critical,
			Block, "This would delete the workspace or more. A variable that may be empty counts as empty: write " +
				`"${NAME:?}/path", or the path itself.`, true},
		{GitRemove, "git rm", High, Warn, "You are about to remove files from the repository. Check that they are " +
			"yours and that the task does not need them.", true},
		{DiscardWork, "git checkout, restore, reset --hard, clean, stash drop, submodule deinit or worktree remove that " +
			"discard work", Critical, Block,
			"This discards uncommitted work, perhaps of other people. Undo your own changes by editing the files.", true},
		{StashWork, "git stash of files that git does not track", High, Warn,
			"This takes untracked files out of the workspace. Restore them with git stash pop before you end your turn.", false},
		{RewriteHistory, "git push --force, branch -D, checkout -B, tag -d, filter-branch, update-ref -d, reflog expire, " +
			"gc --prune=now",
			Critical, Block,
			"This rewrites or removes history that others may need.", true},
		{SkipChecks, "commit or push --no-verify and other ways to skip hooks", High, Warn,
			"Hooks have to run. Fix what they report.", false},
		{DestroyExternal, "destroying what is no file of the workspace: databases, infrastructure, volumes, clusters, " +
			"clouds; publishing packages", Critical, Gate,
			"No snapshot can restore what this destroys or publishes. Say in your answer why it is needed.", true},
		{DecideForPerson, "answering gates of perdure, allowing denied calls, installing or removing its hooks, resuming " +
			"or ending its loops, marking false alarms, killing it",
			Critical, Gate,
			"Only a person decides that. Say in your answer what you need and why.", false},
		{Unreadable, "a command line that cannot be parsed, or that hides its command", Medium, Warn,
			"The effect of this command line cannot be determined before it runs. Name the command and its files directly.",
			false},
	}
}

// rule returns the row of a pattern.
func rule(p Pattern) Rule {
	all := Table()
	return all[slices.IndexFunc(all, func(r Rule) bool { return r.Pattern == p })]
}
