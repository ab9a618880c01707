// Command detect measures the detectors of package internal/detect: how much of
// planted cheats they find, and how often they block ordinary work.
//
//	go run -C bench ./detect planted [-json]
//	go run -C bench ./detect unseen [-list] [-only TEXT]
//	go run -C bench ./detect mutants [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect commits [-dir DIR] [-n 500] [-list]
//	go run -C bench ./detect patches [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect releases [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect small [-set a|b] [-cache DIR] [-files N] [-list] [-only TEXT]
//	go run -C bench ./detect histories [-set tuning|first|second|third|fourth|fifth] [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect ledger [-set SET] [-cache DIR]
//	go run -C bench ./detect reformat [-cache DIR] [-only TEXT]
//	go run -C bench ./detect latency [-n 500]
//	go run -C bench ./detect ratchet [-update]
//
// planted measures recall and false alarms on the edits of internal/detect/planted, each
// alone and among unrelated changes, by language, type and tier. unseen does so on the
// changes of bench/detect/unseen, which were written without knowledge of the rules.
// mutants plants cheats by regular expressions in released packages of other projects.
// commits compares the commits of a git repository (without -dir this one) with their
// parents. patches compares versions of source packages of Debian before and after the
// projects' own patches (needs apt-get, dpkg-source and patch). releases fetches
// consecutive released versions of packages with the package clients (go, npm, apt-get)
// and counts the files with an alarm. small counts releases that change few files, each as
// a commit; its sets are measured separately. histories compares the last 60 commits of each
// of 48 projects with their parents, protected files included, in six sets of eight, and
// counts which patterns block. ledger
// counts for each pattern the cheats of unseen and mutants that it finds, those that only it
// finds, and the commits of histories that it stops. reformat runs gofmt, rustfmt, black, ruff
// and prettier, if installed, over the files of planted, unseen and histories, and prints what
// blocks: nothing may. latency measures the time of a check.
//
// ratchet runs planted, unseen and commits, and fails if a rate is worse than in
// bench/detect/ratchet.json; -update writes that file. It runs in the folder bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench detect:", err)
		os.Exit(1)
	}
}

const subcommands = "planted, unseen, mutants, commits, patches, releases, small, histories, ledger, " +
	"reformat, latency or ratchet"

func measure(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no subcommand: use " + subcommands)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	cache := flags.String("cache", "", "`DIR` for fetched packages (default: in the user's cache folder)")
	list := flags.Bool("list", false, "print every alarm")
	dir := flags.String("dir", ".", "`DIR` of a git repository")
	most := flags.Int("n", 500, "number of commits or samples")
	files := flags.Int("files", 3, "small: maximum number of code files that a release changes")
	set := flags.String("set", "", "small: a or b, lists drawn at random (default: the first list); "+
		"histories and ledger: tuning, first, second, third, fourth or fifth (default: all)")
	only := flags.String("only", "", "only packages or edits whose name contains `TEXT`")
	update := flags.Bool("update", false, "ratchet: write the figures instead of comparing them")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*cache = filepath.Join(dir, "perdure-bench-detect")
	}
	o := releaseOptions{cache: *cache, only: *only, list: *list, few: *files, set: *set, out: out,
		totals: make(map[string]*tally), patterns: make(map[string]int), commits: make(map[string]*commitTally)}
	switch args[0] {
	case "planted":
		rates, err := plantedRates(ctx, out, *only, *list)
		if err != nil {
			return err
		}
		return printRates(out, rates)
	case "unseen":
		rows, err := unseenRates(ctx, out, *only, *list)
		if err != nil {
			return err
		}
		return printHeard(out, rows)
	case "mutants":
		return mutantRates(ctx, o)
	case "commits":
		n, err := commitRates(ctx, out, work{dir: *dir, until: "HEAD", most: *most, list: *list})
		if err != nil {
			return err
		}
		return printCommitCounts(out, n)
	case "ratchet":
		return ratchet(ctx, out, *update)
	case "patches":
		return patchRates(ctx, o)
	case "latency":
		return latencies(ctx, out, *most)
	case "releases":
		return releaseRates(ctx, o)
	case "ledger":
		return ledger(ctx, o)
	case "histories":
		return historyRates(ctx, o)
	case "reformat":
		return reformatRates(ctx, o)
	case "small":
		return smallRates(ctx, o)
	}
	return fmt.Errorf("unknown subcommand %q: use %s", args[0], subcommands)
}
