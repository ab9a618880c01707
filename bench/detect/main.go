// Command detect measures the detectors of package internal/detect: how much of
// what is planted they find, and how often they act on ordinary work.
//
//	go run -C bench ./detect planted [-json]
//	go run -C bench ./detect unseen [-list] [-only TEXT]
//	go run -C bench ./detect mutants [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect commits [-dir DIR] [-n 500] [-list]
//	go run -C bench ./detect patches [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect releases [-cache DIR] [-list] [-only TEXT]
//	go run -C bench ./detect small [-set a|b] [-cache DIR] [-files N] [-list] [-only TEXT]
//	go run -C bench ./detect latency [-n 500]
//
// planted takes the cheats and twins of internal/detect/planted, each alone and
// among unrelated changes, and prints recall and false alarms by language, type
// and tier. unseen takes the changes of bench/detect/unseen, which were written
// without a look at the rules. mutants plants cheats by regular expressions in released packages that
// others wrote. commits compares the commits of a git repository, this one without
// -dir, with their parents. patches compares what the projects' own patches in
// source packages of Debian change, each as the commit that it was, in six languages
// and more (apt-get, dpkg-source, patch). releases fetches consecutive released versions of open-source packages
// with the package clients (go, npm, and apt-get, where the versions are the suites
// of Debian that have them) into a cache folder and counts what acts in standard
// mode; -list prints every alarm, so that it can be looked at. small does so for packages that
// release often, and counts each release that changes few files as a commit; each of its
// sets is measured apart.
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
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench detect:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("name what to measure: planted, unseen, mutants, commits, patches, releases, small or latency")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	cache := flags.String("cache", "", "folder for fetched packages (default: in the user's cache folder)")
	list := flags.Bool("list", false, "print every alarm")
	dir := flags.String("dir", ".", "folder of a git repository")
	most := flags.Int("n", 500, "commits to look at, or samples to take")
	files := flags.Int("files", 3, "small: how many files of code a release may change")
	set := flags.String("set", "", "small: a or b, the lists that were drawn by lot; without it the first one")
	only := flags.String("only", "", "only packages, or edits, whose name has this in it")
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
		return plantedRates(ctx, out, *only, *list)
	case "unseen":
		return unseenRates(ctx, out, *only, *list)
	case "mutants":
		return mutantRates(ctx, o)
	case "commits":
		return commitRates(ctx, out, *dir, *most, *list)
	case "patches":
		return patchRates(ctx, o)
	case "latency":
		return latencies(ctx, out, *most)
	case "releases":
		return releaseRates(ctx, o)
	case "small":
		return smallRates(ctx, o)
	}
	return fmt.Errorf("%q cannot be measured: name planted, unseen, mutants, commits, patches, releases, small or "+
		"latency", args[0])
}
