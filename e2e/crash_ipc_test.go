package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/rpc"
)

// ipcClient is a worker that connects again whenever its daemon has died.
type ipcClient struct {
	t    *testing.T
	path string
	conn net.Conn
	in   *bufio.Reader
}

type ipcReply struct {
	Result struct {
		TaskID string  `json:"taskId"`
		State  string  `json:"state"`
		Output string  `json:"output"`
		Result *string `json:"result"`
		Fence  int64   `json:"fence"`
	} `json:"result"`
	Error *rpc.Error `json:"error"`
}

// once sends a request and reads its answer; after an error its outcome is unknown.
func (c *ipcClient) once(method string, params map[string]any) (ipcReply, error) {
	if c.conn == nil {
		conn, err := net.Dial("unix", c.path)
		if err != nil {
			return ipcReply{}, err
		}
		c.conn, c.in = conn, bufio.NewReader(conn)
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return ipcReply{}, err
	}
	_, err = c.conn.Write(append(raw, '\n'))
	var line []byte
	if err == nil {
		line, err = c.in.ReadBytes('\n')
	}
	var r ipcReply
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		c.close()
	}
	return r, err
}

func (c *ipcClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// call repeats a request that may be sent twice until it is answered.
func (c *ipcClient) call(method string, params map[string]any) ipcReply {
	end := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := c.once(method, params)
		if err == nil {
			return r
		}
		if time.Now().After(end) {
			c.t.Errorf("%s: no answer: %v", method, err)
			return r
		}
		<-tick.C
	}
}

// task submits and completes one task, and returns its expected state.
func (c *ipcClient) task(name string, chunks int) (id string, err error) {
	want := func(method string, r ipcReply, state string) error {
		if r.Error != nil {
			return fmt.Errorf("%s %s: %w", method, name, r.Error)
		}
		if r.Result.State != state {
			return fmt.Errorf("%s %s: %+v", method, name, r.Result)
		}
		return nil
	}
	made := c.call("task.submit", map[string]any{"id": name, "prompt": name, "metadata": map[string]string{"name": name}})
	if err := want("submit", made, "queued"); err != nil {
		return "", err
	}
	id = made.Result.TaskID
	begun := c.call("task.start", map[string]any{"taskId": id})
	if err := want("start", begun, "running"); err != nil {
		return id, err
	}
	fence := begun.Result.Fence
	output := ""
	for i := range chunks {
		chunk := fmt.Sprintf("%s.%d ", name, i)
		for {
			r, err := c.once("task.append_output", map[string]any{"taskId": id, "chunk": chunk, "fence": fence})
			if err == nil && r.Error != nil {
				return id, fmt.Errorf("append to %s: %w", name, r.Error)
			}
			if err == nil {
				break
			}
			got := c.call("task.get", map[string]any{"taskId": id}) // was it done?
			if got.Result.Output == output+chunk {
				break
			}
			if got.Error != nil || got.Result.Output != output {
				return id, fmt.Errorf("the output of %s is %q, %q were acknowledged", name, got.Result.Output, output)
			}
		}
		output += chunk
	}
	done := c.call("task.complete", map[string]any{"taskId": id, "result": name + " done", "fence": fence})
	if err := want("complete", done, "completed"); err != nil {
		return id, err
	}
	if done.Result.Output != output {
		return id, fmt.Errorf("the output of %s is %q, want %q", name, done.Result.Output, output)
	}
	return id, nil
}

// TestIPCKills kills the daemon repeatedly while clients submit, execute and complete
// tasks: every acknowledged change is stored once, and the workers continue.
func TestIPCKills(t *testing.T) {
	t.Parallel()
	bin, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	kills := kills(t) / 10
	rng := rand.New(rand.NewPCG(uint64(seed(t)), 7))
	short, err := os.MkdirTemp("", "pd") //nolint:usetesting // its path is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	store := filepath.Join(t.TempDir(), ".perdure")
	socket := filepath.Join(short, "ipc", "s")
	start := func() *exec.Cmd {
		cmd := exec.Command(bin, "serve", "--aiwg-ipc="+socket, "--socket", filepath.Join(short, "main"))
		cmd.Env = append(os.Environ(), "PERDURE_DIR="+store)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	const workers = 6
	var stop atomic.Bool
	var wg sync.WaitGroup
	done := make([]map[string]string, workers)
	for i := range workers {
		done[i] = make(map[string]string)
		wg.Go(func() {
			c := &ipcClient{t: t, path: socket}
			defer c.close()
			for n := 0; (n == 0 || !stop.Load()) && !t.Failed(); n++ {
				name := fmt.Sprintf("w%d-%d", i, n)
				id, err := c.task(name, 4)
				if err != nil {
					t.Error(err)
					return
				}
				done[i][id] = name
			}
		})
	}
	daemon := start()
	probe := &ipcClient{t: t, path: socket}
	for range kills {
		if rng.IntN(4) > 0 { // else it may be killed while it begins
			probe.call("ping", nil)
		}
		<-time.After(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
		if err := daemon.Process.Kill(); err != nil {
			t.Error(err)
		}
		if err := daemon.Wait(); !killed(err) {
			t.Errorf("the daemon ended by itself: %v", err)
		}
		daemon = start()
	}
	probe.call("ping", nil)
	probe.close()
	stop.Store(true)
	wg.Wait()
	if err := errors.Join(daemon.Process.Signal(os.Interrupt), daemon.Wait()); err != nil {
		t.Errorf("stop: %v", err)
	}
	checkIPCTasks(t, store, done)
}

// checkIPCTasks checks that the store has the acknowledged tasks and no other ones.
func checkIPCTasks(t *testing.T, dir string, done []map[string]string) {
	t.Helper()
	s, err := perdure.Open(t.Context(), perdure.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := 0
	for _, mine := range done {
		all += len(mine)
		for id, name := range mine {
			n, err := perdure.ParseTaskID(id)
			if err != nil {
				t.Fatal(err)
			}
			task, err := s.Task(t.Context(), n)
			if err != nil {
				t.Errorf("acknowledged %s: %v", id, err)
				continue
			}
			if task.State != perdure.Completed || task.Result != name+" done" || task.Prompt != name ||
				!strings.Contains(string(task.Metadata), name) || task.Attempts != 1 {
				t.Errorf("%s is %+v", id, task)
			}
		}
	}
	if all == 0 {
		t.Fatal("no task was done; the test proves nothing")
	}
	count := 0
	for f := (perdure.TreeFilter{Limit: 1000}); ; {
		page, err := s.Trees(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		count += len(page)
		if len(page) < f.Limit {
			break
		}
		f.Before = page[len(page)-1].ID
	}
	if count != all {
		t.Errorf("there are %d trees of %d tasks: something was made twice or lost", count, all)
	}
	if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("the store is not sound: %v %v", problems, err)
	}
	t.Logf("%d tasks", all)
}
