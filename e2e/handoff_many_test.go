package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/perdure/perdure/handoff"
)

// anAgent continues from a prompt on its standard input, and ends in the way $2 after
// $3 steps. Its steps are in work.log, those that the program acknowledged in
// recorded.log.
const anAgent = `set -e
name=$1 end=$2 most=$3
export PERDURE_AGENT=$name
cat > prompt.$name
token=$(sed -n 's/.*Give .--token \([a-z0-9]*\).*/\1/p' prompt.$name)
export PERDURE_HANDOFF_TOKEN=$token
echo "$token" > token
sed -n '/^## Pending Steps/,/^## Files/s/^- write \([^ ]*\) .*/\1/p' prompt.$name > todo.$name
n=0
while read file; do
  step="write $file with what it is the content of, and see that nobody wrote it before, as the task says it has to be"
  if [ $n -eq $most ]; then
    case $end in
      killed) kill -9 $$;;
      begun) perdure handoff current "$step" --partial "not written yet"; kill -9 $$;;
      context) perdure handoff context --used 91% --partial "none of it" 2> told || [ $? = 8 ]
        grep -q "Resume with new session" told; exit 0;;
      rate-limit) perdure handoff rate-limit "429" --until 1m; exit 0;;
      fail) perdure handoff fail "no luck with $file"; exit 0;;
      reassign) perdure handoff reassign --to other > reassigned; exit 0;;
    esac
  fi
  perdure handoff current "$step" --partial "begun"
  echo "$name $file" >> work.log
  echo "content of $file" > $file
  [ $n -eq $most ] && [ $end = done-not-recorded ] && kill -9 $$
  perdure handoff step "$step" --created $file
  echo "$file" >> recorded.log
  n=$((n+1))
done < todo.$name
perdure handoff verify
perdure handoff done
touch all-done
`

// ends are the ways in which agents end before the work does. "at any moment" is
// a kill from outside, of the agent and of the command that it runs.
func ends() []string {
	return []string{"killed", "begun", "done-not-recorded", "at any moment", "context", "rate-limit", "fail", "reassign"}
}

// figures are counted over all hand-overs.
type figures struct {
	handovers, undone   int // that redid nothing that was recorded
	overflows, steps    int // steps recorded before context overflows
	preserved           int // of them, told to the successor
	verdicts, right     int // of single files
	moved, named        int // files that moved, and those that the prompt names
	byEnd               map[string]int
	longest, resumption time.Duration
}

const stepsOfTask = 12

// Over many hand-overs between agents that end in every way, no successor repeats a
// recorded step, no completed step is lost by a context overflow, and the verdict on
// each file is correct. PERDURE_HANDOVERS is their number, PERDURE_CRASH_SEED repeats
// them.
func TestHandoffMany(t *testing.T) {
	t.Parallel()
	want := number(t, "PERDURE_HANDOVERS", 10, 300)
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 5))
	f := &figures{byEnd: make(map[string]int)}
	tasks := 0
	for ; f.handovers < want && !t.Failed(); tasks++ {
		handOver(t, rng, f, want)
	}
	t.Logf("%d hand-overs in %d tasks of %d steps: %v", f.handovers, tasks, stepsOfTask, f.byEnd)
	t.Logf("continued without redoing a recorded step: %d of %d", f.undone, f.handovers)
	t.Logf("completed steps preserved after a context overflow: %d of %d (%d overflows)", f.preserved, f.steps,
		f.overflows)
	t.Logf("files judged rightly: %d of %d; of %d that had moved %d were named to the successor", f.right, f.verdicts,
		f.moved, f.named)
	t.Logf("longest resume %v, mean %v", f.longest, f.resumption/time.Duration(max(1, f.handovers)))
	if f.undone != f.handovers || f.preserved != f.steps || f.right != f.verdicts || f.named != f.moved {
		t.Error("the goal is all of each")
	}
}

// handOver completes one task with as many agents as necessary.
func handOver(t *testing.T, rng *rand.Rand, f *figures, want int) {
	t.Helper()
	w := newWorkplace(t)
	w.write("prd.json", fmt.Sprintf(
		`{"id": "US-1", "verificationContract": {"type": "verifiable", "criteria": [{"activity": "content",
		"command": "for n in $(seq 1 %d); do grep -q \"content of pages/$n\" pages/$n || exit 1; done"}]}}`, stepsOfTask))
	w.write("agent.sh", anAgent)
	w.write("pages/.gitkeep", "")
	w.write("recorded.log", "")
	w.write("work.log", "")
	args := ""
	for n := range stepsOfTask {
		args += fmt.Sprintf(` --pending "write pages/%d with what it is the content of, and see that nobody wrote it `+
			`before, as the task says it has to be"`, n+1)
	}
	w.sh("perdure handoff start Files --contract US-1.verificationContract" + args)
	end, takeOver := "", false
	for n := 0; ; n++ {
		name := fmt.Sprintf("agent-%d", n)
		recorded := w.recorded()
		var moved map[string]handoff.FileState
		if n > 0 {
			moved = w.meddle(rng, recorded)
			w.judged(f, recorded, moved)
		}
		prompt := w.resume(f, end, name, takeOver)
		if n > 0 {
			w.told(f, prompt, end, recorded, moved)
		}
		if f.handovers >= want {
			end = "finish"
		} else {
			end = ends()[rng.IntN(len(ends()))]
		}
		done := strings.Count(w.read("work.log"), "\n")
		w.work(rng, name, end, prompt)
		if n > 0 {
			f.handovers++
			again := slices.DeleteFunc(strings.Fields(w.read("work.log"))[2*done:],
				func(word string) bool { return !slices.Contains(recorded, word) })
			if len(again) == 0 {
				f.undone++
			} else {
				t.Errorf("%s did %q again", name, again)
			}
		}
		if _, err := os.Stat(filepath.Join(w.dir, "all-done")); err == nil {
			return
		}
		f.byEnd[end]++
		takeOver = end != "fail" && end != "reassign" && end != "context"
	}
}

// recorded returns the files of the completed steps, and checks that they include all
// acknowledged ones.
func (w *workplace) recorded() []string {
	w.t.Helper()
	var all []string
	for _, line := range strings.Split(w.sh("perdure handoff log --json"), "\n") {
		var entry struct {
			Kind string `json:"kind"`
			Data struct {
				Created []string `json:"created"`
			} `json:"data"`
		}
		if line != "" && json.Unmarshal([]byte(line), &entry) == nil && entry.Kind == "step" {
			all = append(all, entry.Data.Created...)
		}
	}
	for _, file := range strings.Fields(w.read("recorded.log")) {
		if !slices.Contains(all, file) {
			w.t.Errorf("%s was recorded and is not in the ledger", file)
		}
	}
	return all
}

// meddle changes a recorded file, and returns the expected verdict.
func (w *workplace) meddle(rng *rand.Rand, recorded []string) map[string]handoff.FileState {
	w.t.Helper()
	if len(recorded) == 0 {
		return nil
	}
	file := recorded[rng.IntN(len(recorded))]
	state := map[string]handoff.FileState{}
	switch rng.IntN(6) {
	case 0:
		w.sh("echo more >> " + file)
		state[file] = handoff.Changed
	case 1: // of the same length, with the previous time
		w.sh("cp -p " + file + " kept; tr c k < kept > " + file + "; touch -r kept " + file)
		state[file] = handoff.Changed
	case 2:
		w.sh("rm " + file)
		state[file] = handoff.Deleted
	case 3: // the same bytes, written again
		w.sh("cat " + file + " > kept; cat kept > " + file)
	case 4:
		w.sh("touch -t 203001010000 " + file)
	}
	return state
}

// judged compares the verdict on each file with the expected one.
func (w *workplace) judged(f *figures, recorded []string, moved map[string]handoff.FileState) {
	w.t.Helper()
	var v handoff.Verdict
	out, _, status := w.try("perdure handoff stale --check --json")
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	if len(v.Files) != len(recorded) || status == 3 != (len(moved) > 0) {
		w.t.Errorf("exit status %d, %d of %d files are judged, %d moved", status, len(v.Files), len(recorded), len(moved))
	}
	for _, file := range v.Files {
		want := handoff.Fresh
		if state, is := moved[file.Path]; is {
			want = state
		}
		if f.verdicts++; file.State == want {
			f.right++
		} else {
			w.t.Errorf("%s is judged %s, it is %s", file.Path, file.State, want)
		}
	}
}

// resume takes the work over for the next agent, as after the given end of the previous
// one.
func (w *workplace) resume(f *figures, end, name string, takeOver bool) string {
	w.t.Helper()
	script := "perdure handoff resume --agent " + name
	switch {
	case end == "context": // a new session of the same agent, with its token
		script += " --token " + strings.TrimSpace(w.read("token"))
	case takeOver:
		script += " --take-over"
	}
	before := time.Now()
	prompt := w.sh(script)
	took := time.Since(before)
	f.longest, f.resumption = max(f.longest, took), f.resumption+took
	return prompt
}

// told checks the prompt of the successor.
func (w *workplace) told(f *figures, prompt, end string, recorded []string, moved map[string]handoff.FileState) {
	w.t.Helper()
	_, completed, _ := strings.Cut(prompt, "\n## Completed Steps\n")
	completed, _, _ = strings.Cut(completed, "\n## ")
	if end == "context" {
		f.overflows++
		f.steps += len(recorded)
		for _, file := range recorded {
			if strings.Contains(completed, "- write "+file+" ") {
				f.preserved++
			}
		}
	}
	for file, state := range moved {
		if f.moved++; strings.Contains(prompt, fmt.Sprintf("\n- `%s`: %s\n", file, state)) {
			f.named++
		}
		w.write(file, "content of "+file+"\n") // the successor reconciles it
	}
}

// work runs an agent until it ends.
func (w *workplace) work(rng *rand.Rand, name, end, prompt string) {
	w.t.Helper()
	most := rng.IntN(3)
	cmd := w.command(fmt.Sprintf("exec sh agent.sh %s '%s' %d", name, end, most))
	cmd.Stdin = strings.NewReader(prompt)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var after <-chan time.Time
	if end == "at any moment" {
		const longest = 600 * time.Millisecond // some four steps
		after = time.After(time.Duration(rng.Int64N(int64(longest))))
	}
	select {
	case err := <-ended:
		if err != nil && !killed(err) {
			w.t.Fatalf("%s, to end by %s: %v\n%s", name, end, err, out.String())
		}
	case <-after:
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // all of it; it may have ended just now
		if err := <-ended; err != nil && !killed(err) {
			w.t.Fatalf("%s, killed: %v\n%s", name, err, out.String())
		}
	}
}
