package caller

import (
	"os/exec"
	"testing"
)

// A program's name can contain anything; a process in the background of its terminal, without
// one, or that has ended is not in the foreground of a terminal.
func TestParse(t *testing.T) {
	t.Parallel()
	const rest = " 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	for stat, want := range map[string]process{
		"7 (sh) S 1 7 7 34816 7" + rest:              {start: "4711", name: "sh", foreground: true, parent: 1, leader: true},
		"7 (a) R 1 5 5 34816 5) S 1 7 7 0 -1" + rest: {start: "4711", name: "a) R 1 5 5 34816 5", parent: 1},
		"7 (background) S 1 7 5 34816 5" + rest:      {start: "4711", name: "background", parent: 1},
		"7 (without a terminal) S 1 7 7 0 -1" + rest: {start: "4711", name: "without a terminal", parent: 1},
		"7 (without a terminal) S 1 7 7 0 7" + rest:  {start: "4711", name: "without a terminal", parent: 1},
	} {
		if got, ok := parse([]byte(stat)); !ok || got != want {
			t.Errorf("%s: %+v, %v", stat, got, ok)
		}
	}
	for _, stat := range []string{"", "7 sh", "7 (sh) Z 1 7 7 34816 7" + rest, "7 (sh) S 1 7"} {
		if got, ok := parse([]byte(stat)); ok {
			t.Errorf("%s: %+v", stat, got)
		}
	}
}

// Another process with the same ID is not the caller.
func TestProcessIDUsedAgain(t *testing.T) {
	t.Parallel()
	self := Self()
	p, ok := inspect(self.PID)
	if !ok {
		t.Fatal("this process is not found")
	}
	same := Caller{PID: self.PID, start: p.start}
	if same.Ended() || same.Program() == "" {
		t.Errorf("%v has ended", same)
	}
	for _, other := range []Caller{{PID: self.PID, start: "1"}, {PID: self.PID}, {}} {
		if !other.Ended() || other.Terminal() {
			t.Errorf("%v is taken for this process", other)
		}
	}
}

// TestStarter: the program that started a process through shells is found, other than a
// user's shell.
func TestStarter(t *testing.T) {
	t.Parallel()
	own := Self()
	p, ok := inspect(own.PID)
	all := own.Ancestors()
	if !ok || len(all) == 0 || all[0].PID != p.parent || all[0].Start == "" {
		t.Fatalf("the ancestors are %+v, the parent is %d", all, p.parent)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read x; true")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := Caller{PID: cmd.Process.Pid, self: true}
	if from, ok := child.Starter(); !ok || from.PID != own.PID || from.Start != p.start {
		t.Errorf("the starter is %+v, %v", from, ok)
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, ok := child.Starter(); ok {
		t.Error("a process that has ended has a starter")
	}
}
