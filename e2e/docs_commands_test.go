package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docLine describes an exception for a command line of a page. A line without an entry
// is run unchanged and must end with status 0.
type docLine struct {
	before string // shell commands that run first, in the same shell
	by     string // the test that runs the line
	reason string // why it is not run: the real command only parses its flags
	other  string // why neither: it is not a command of perdure
}

// docPage is a page with command lines, which run in a folder of their own, in their
// order, each once. A key of lines that ends with … is the beginning of a line.
type docPage struct {
	file  string
	scene func(w *workplace)
	lines map[string]docLine
}

func docPages() []docPage {
	const (
		withoutArguments = "the page names the command without its arguments"
		untilInterrupted = "it runs until it is interrupted; scripts run it"
	)
	return []docPage{
		{file: "README.md", scene: func(*workplace) {}, lines: map[string]docLine{
			`go test ./...`:                       {other: "it runs these tests"},
			`go build -o bin/ ./cmd/perdure`:      {other: "these tests build the package"},
			`make build`:                          {other: "these tests build the package"},
			`perdure run "What does Newton…`:      {by: "TestDocsReadmeBook"},
			`perdure run "How many questions…`:    {by: "TestDocsReadmeRepl"},
			`cp -r examples/loop slug && cd slug`: {by: "TestDocsReadmeLoop"},
			`perdure loop run "Make the tests…`:   {by: "TestDocsReadmeLoop"},
			`perdure tree`:                        {reason: withoutArguments},
			`perdure resume`:                      {reason: "the page names it before there is a run"},
		}},
		{file: "docs/tour.md", scene: sceneWithLoop, lines: map[string]docLine{
			`perdure loop run "Make the tests…`: {reason: "it calls Claude Code"},
			`perdure loop answer`:               {reason: "no loop asks here; scripts run it"},
			`perdure serve`:                     {reason: untilInterrupted},
			`perdure watch`:                     {reason: untilInterrupted},
		}},
		{file: "docs/operations.md", scene: sceneWithTrees, lines: map[string]docLine{
			`perdure watch`:                              {reason: untilInterrupted},
			`perdure serve`:                              {reason: untilInterrupted},
			`perdure serve --aiwg-ipc`:                   {reason: untilInterrupted},
			`perdure events --follow --json`:             {reason: untilInterrupted},
			`perdure handoff step`:                       {reason: withoutArguments},
			`perdure hook codex`:                         {reason: "it reads an event from Codex; scripts run it"},
			`perdure loop answer reply --reason "…"`:     {reason: "no loop asks here; scripts run it"},
			`perdure resume`:                             {before: "perdure answer abandon || true"},
			`perdure retry TASK`:                         {before: "touch retried; TASK=$FAILED"},
			`perdure loop import state.json`:             {before: "cp state.json check.sh agent.sh ../copy; cd ../copy"},
			`perdure loop resume`:                        {before: "cd ../copy"},
			`sqlite3 .perdure/perdure.db ".backup FILE"`: {other: "it is SQLite's own shell"},
		}},
		{file: "docs/models.md", scene: sceneWithTrees, lines: map[string]docLine{
			`perdure run "Summarize…`:   {reason: "it needs Ollama"},
			`perdure answer TREE`:       {before: asking},
			`perdure answer TREE retry`: {before: asking + "touch asked;"},
			`perdure run "Which tests…`: {reason: "it needs a server"},
			`perdure resume TREE`:       {before: asking + `touch asked; perdure answer "$TREE" retry;`},
		}},
	}
}

// asking makes a tree that waits at a gate the one of the page.
const asking = `
rm -f asked
perdure run asking --model 'exec:sh model.sh asked,exec:sh model.sh asked' --max-attempts 1 --call-retries 0 2> gate ||
	grep -q 'perdure answer' gate
TREE=$(newest)
`

// sceneWithLoop has a loop that was killed in its third iteration.
func sceneWithLoop(w *workplace) {
	w.t.Helper()
	w.write("check.sh", loopCheck)
	w.write("agent.sh", loopAgent)
	w.write("tests/a", "pass\n")
	w.write("tests/b", "fail\n")
	w.dies(loopRun, "PERDURE_FAILPOINT=loop.act.done:3")
}

// sceneWithTrees has a completed tree and a failed one besides, and a folder for
// another copy of the workspace.
func sceneWithTrees(w *workplace) {
	w.t.Helper()
	sceneWithLoop(w)
	w.write("model.sh", "cat > prompt; test -e $1 && echo said\n")
	w.sh(docPrelude + `
echo LOOP=$(ls .perdure/loops) > variables
perdure run failing --model 'exec:sh model.sh retried' --max-attempts 1 --call-retries 0 || test $? = 1
echo FAILED=$(first_task $(newest)) >> variables
perdure run completed --model mock:hash
echo TREE=$(newest) >> variables
mkdir ../copy
cp -r tests ../copy`)
}

// docPrelude runs before the command lines of a page. The program is built once, and a
// command that the page kills after some time is killed after a call was answered.
const docPrelude = `
newest() { perdure status --json | sed -n '1s/.*"tree_id":"\([^"]*\)".*/\1/p'; }
first_task() { perdure tree "$1" | sed -n 's/.*\(task-[0-9]*\).*/\1/p' | head -n 1; }
go() { if [ "$1 $2" = "run ./cmd/perdure" ]; then shift 2; perdure "$@"; else command go "$@"; fi; }
sleep() { until perdure status --json | grep '"state":"running"' | grep -qv '"completed":0,'; do command sleep 0.01; done; }
kill() { sleep; command kill "$@"; wait; }
if [ -e variables ]; then . ./variables; else TREE=$(newest); fi
if [ -n "$TREE" ]; then TASK=$(first_task "$TREE"); fi
`

// Every command line of the README, the tour and the pages on operations and models runs unchanged,
// or its flags are those of the command.
func TestDocsCommands(t *testing.T) {
	t.Parallel()
	tests := testNames(t)
	for _, page := range docPages() {
		t.Run(filepath.Base(page.file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../" + page.file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorkplace(t)
			w.dir = filepath.Join(w.dir, "workspace")
			w.write(".keep", "")
			page.scene(w)
			used, seen := make(map[string]bool), make(map[string]bool)
			for _, script := range commandLines(string(text)) {
				var run strings.Builder
				for _, line := range script {
					key, special := page.find(line)
					used[key] = true
					if len(script) == 1 && seen[line] {
						continue
					}
					seen[line] = true
					switch {
					case special.by != "" && !tests[special.by]:
						t.Errorf("there is no %s, which is to run %s", special.by, line)
					case special.reason != "":
						w.parses(line)
					case special.by == "" && special.other == "":
						fmt.Fprintf(&run, "%s\n%s\n", special.before, withVariables(line))
					}
				}
				if run.Len() == 0 {
					continue
				}
				if out, errs, status := w.try("set -e\n" + docPrelude + run.String()); status != 0 {
					t.Errorf("status %d\n%s\n%s%s", status, run.String(), out, errs)
				}
			}
			for key := range page.lines {
				if !used[key] {
					t.Errorf("%s does not have the line %s", page.file, key)
				}
			}
		})
	}
}

func (p *docPage) find(line string) (key string, special docLine) {
	for key, special := range p.lines {
		if beginning, cut := strings.CutSuffix(key, "…"); line == key || cut && strings.HasPrefix(line, beginning) {
			return key, special
		}
	}
	return "", docLine{}
}

// commandLines returns the command lines of a page: those of blocks, and those in the
// text between backquotes.
func commandLines(page string) (scripts [][]string) {
	first := regexp.MustCompile("^(perdure|go|cp) ")
	command := regexp.MustCompile("^(perdure|make|sqlite3|go (build|run)) +[^ ]")
	code := regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```|`([^`]+)`")
	for _, m := range code.FindAllStringSubmatch(page, -1) {
		language, block, span := m[1], m[2], strings.Join(strings.Fields(m[3]), " ")
		if command.MatchString(span) {
			scripts = append(scripts, []string{span})
		}
		block = strings.ReplaceAll(block, "\\\n", "")
		if language != "" || !first.MatchString(strings.TrimPrefix(block, "$ ")) {
			continue
		}
		var lines []string
		session := strings.HasPrefix(block, "$ ")
		for line := range strings.Lines(block) {
			line, typed := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if typed == session {
				lines = append(lines, line)
			}
		}
		scripts = append(scripts, lines)
	}
	return scripts
}

// withVariables replaces values that differ between runs by shell variables.
func withVariables(line string) string {
	line = regexp.MustCompile(`tree-[0-9a-f]{8}`).ReplaceAllString(line, "TREE")
	return regexp.MustCompile(`\b(TREE|TASK|LOOP)\b`).ReplaceAllString(line, "$$$1")
}

// parses checks that the words of a command line name a command and that it has the
// flags.
func (w *workplace) parses(line string) {
	t := w.t
	t.Helper()
	words := strings.Fields(w.sh(`perdure() { for word; do printf '%s\n' "$word" | tr ' ' _; done; }; ` + line))
	p := &place{t: t, dir: w.dir}
	status, stdout, stderr := p.run(append(words, "--help")...)
	_, usage, _ := strings.Cut(stdout, "\nUsage\n  perdure ")
	usage, _, _ = strings.Cut(usage, "\n")
	for _, word := range words {
		rest, found := strings.CutPrefix(usage, word+" ")
		if found {
			usage = rest
			continue
		}
		if !strings.HasPrefix(word, "-") && strings.HasPrefix(usage, "[flags]") {
			t.Errorf("%s: there is no command or argument %s", line, word)
		}
		break
	}
	if status != 0 || usage == "" {
		t.Errorf("%s: status %d\n%s", line, status, stderr)
	}
}
