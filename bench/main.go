// Command bench measures the store on this machine and prints one JSON line a
// result. Each line names its workload and holds F, the rate of 4 KiB
// overwrites with fdatasync on the same disk in the same round, because only
// ratios to F carry over to other machines.
//
//	go run -C bench . NAME [flags]
//
// Without a name it lists the benchmarks.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/rlm"
	"github.com/perdure/perdure/worker"
)

// bench is one round: a folder on the disk to measure, and the options.
type bench struct {
	ctx    context.Context
	dir    string
	dsn    string
	n      int
	rounds int
	args   []string
	f      float64        // F of this round
	worker *worker.Worker // the last one of workingAs
}

// result is one line of output.
type result struct {
	Bench    string         `json:"bench"`
	Workload string         `json:"workload"`
	F        float64        `json:"f_per_s"`
	Values   map[string]any `json:"values"`
	Round    int            `json:"round"`
	Date     string         `json:"date"`
}

func main() {
	guard.Enter()
	rlm.EnterEngine()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// program builds the perdure program into a folder and returns its path.
func (b *bench) program(dir string) (string, error) {
	root, err := exec.CommandContext(b.ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/perdure/perdure").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of perdure: %w", err)
	}
	program := filepath.Join(dir, "perdure")
	build := exec.CommandContext(b.ctx, "go", "build", "-C", strings.TrimSpace(string(root)), "-trimpath", "-o", program,
		"./cmd/perdure")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build perdure: %w: %s", err, out)
	}
	return program, nil
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(*bench, int) error{
		"transitions": transitions, "flat": flat, "tree": tree, "idle": idle, "recover": restart, "first-claim": firstClaim,
		"takeover": takeover, "holder": holder, "contend": contend, "writer": lonelyWriter, "status": status,
		"memory": memory, "overhead": overhead, "run": runText, "split": splitText, "split-child": splitChild, "views": views,
		"watch": watchTree, "watch-child": watchChild, "variables": variables, "import": importTasks, "handoff": handoffs,
		"loop": loops, "loop-history": loopHistory, "loop-history-fill": loopHistoryFill,
		"create": createTrees, "loop-persistence": persistence, "eta": forecast, "repl": repl, "repl-child": replChild,
		"reference": compareWithReference,
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return fmt.Errorf("name a benchmark: %v", slices.Sorted(maps.Keys(commands)))
	}
	b := &bench{ctx: ctx}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&b.dir, "dir", "", "folder on the disk to measure (default: a temporary one)")
	flags.StringVar(&b.dsn, "dsn", "", "PostgreSQL address instead of SQLite")
	flags.IntVar(&b.n, "n", 0, "size of the workload (0: the published one)")
	flags.IntVar(&b.rounds, "rounds", 1, "rounds to run")
	profile := flags.String("cpuprofile", "", "write a CPU profile to this file")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	b.args = flags.Args()
	for round := range b.rounds {
		if err := b.round(commands[args[0]], round+1); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) round(measure func(*bench, int) error, round int) error {
	if b.dir == "" {
		dir, err := os.MkdirTemp("", "perdure-bench-")
		if err != nil {
			return err
		}
		b.dir = dir
		defer func() {
			_ = os.RemoveAll(dir) // a temporary folder
			b.dir = ""
		}()
	}
	return measure(b, round)
}

// disk measures F in the folder of the benchmark.
func (b *bench) disk() error {
	const blocks, block = 256, 4096
	f, err := os.Create(filepath.Join(b.dir, "disk-rate"))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a temporary file
	defer f.Close()
	buf := make([]byte, block)
	for i := range blocks {
		if _, err := f.WriteAt(buf, int64(i*block)); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	start, n := time.Now(), 0
	for ; time.Since(start) < time.Second; n++ {
		if _, err := f.WriteAt(buf, int64(n%blocks*block)); err != nil {
			return err
		}
		if err := fdatasync(f); err != nil {
			return err
		}
	}
	b.f = float64(n) / time.Since(start).Seconds()
	return nil
}

func (b *bench) print(name, workload string, round int, values map[string]any) error {
	return json.NewEncoder(os.Stdout).Encode(result{Bench: name, Workload: workload, F: rounded(b.f), Values: values,
		Round: round, Date: time.Now().UTC().Format(time.DateOnly)})
}

func rounded(v float64) float64 { return float64(int64(v*1000+0.5)) / 1000 }

// quantiles adds percentiles of durations, in microseconds, to the values of a result.
func quantiles(d []time.Duration, values map[string]any) map[string]any {
	if len(d) == 0 {
		return values
	}
	slices.Sort(d)
	us := func(q float64) float64 { return rounded(float64(d[int(q*float64(len(d)-1))].Nanoseconds()) / 1000) }
	values["p50_us"], values["p95_us"], values["p99_us"], values["max_us"] = us(0.5), us(0.95), us(0.99), us(1)
	return values
}
