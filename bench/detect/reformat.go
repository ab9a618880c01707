package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/bench/detect/unseen"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/planted"
)

// formatter is a program that lays out code that it reads from its standard input.
type formatter struct {
	exts string // extensions of the files that it formats
	// command has PATH for the path of the file.
	command string
	// options are tried one after the other; each result is compared with the previous one.
	options []string
}

func formatters() []formatter {
	return []formatter{
		{".go", "gofmt", []string{"-s"}},
		{".rs", "rustfmt --edition 2021", []string{"--config max_width=60", "--config max_width=140"}},
		{".py", "black -q -", []string{"-l 50", "-l 140 -C"}},
		{".py", "ruff format --stdin-filename PATH -", []string{"--line-length 50", "--line-length 140"}},
		{".js .mjs .cjs .jsx .ts .mts .tsx .vue", "prettier --stdin-filepath PATH",
			[]string{"--print-width 50",
				"--print-width 140 --single-quote --no-semi --trailing-comma none --arrow-parens avoid"}},
	}
}

func (f *formatter) formats(file string) bool {
	return slices.Contains(strings.Fields(f.exts), path.Ext(file))
}

// reformatRates formats the files of planted and unseen and those of the projects of
// histories, and compares the layouts: none may block. Formatters that are not installed are
// left out.
func reformatRates(ctx context.Context, o releaseOptions) error {
	files, err := o.corpora(ctx)
	if err != nil {
		return err
	}
	for _, f := range formatters() {
		name, _, _ := strings.Cut(f.command, " ")
		if _, err := exec.LookPath(name); err != nil {
			if _, err := fmt.Fprintf(o.out, "left out: %s is not installed\n", name); err != nil {
				return err
			}
			continue
		}
		if err := o.reformat(ctx, name, &f, files); err != nil {
			return err
		}
	}
	return nil
}

// reformat counts the files that a formatter changed and those with an alarm.
func (o *releaseOptions) reformat(ctx context.Context, name string, f *formatter, files map[string]string) error {
	changed, alarmed := 0, 0
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if !f.formats(file) {
			continue
		}
		was := files[file]
		for _, options := range f.options {
			now, err := f.format(ctx, file, options, was)
			if err != nil { // it cannot be parsed
				break
			}
			if now == was {
				continue
			}
			report, err := detect.Run(ctx, &detect.Input{
				Changes: changes(map[string]string{file: was}, map[string]string{file: now})})
			if err != nil {
				return err
			}
			changed++
			for _, a := range alarms(report) {
				if _, err := fmt.Fprintf(o.out, "%s %s: %s:%d %s %q | %s\n", name, options, file, a.Line, a.Pattern, a.Subject,
					a.Evidence); err != nil {
					return err
				}
			}
			if report.Verdict == detect.Block {
				alarmed++
			}
			was = now
		}
	}
	_, err := fmt.Fprintf(o.out, "%s: %d files changed, %d with an alarm\n", name, changed, alarmed)
	return err
}

// format returns the formatted content of a file.
func (f *formatter) format(ctx context.Context, file, options, text string) (string, error) {
	words := strings.Fields(strings.ReplaceAll(f.command, "PATH", filepath.Base(file)))
	cmd := exec.CommandContext(ctx, words[0], slices.Concat(words[1:], strings.Fields(options))...)
	cmd.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	return out.String(), err
}

// corpora returns the files of planted and unseen, and those of the projects of histories at
// their last commit, by path.
func (o *releaseOptions) corpora(ctx context.Context) (map[string]string, error) {
	all := make(map[string]string)
	add := func(set string, files map[string]string) {
		for name, text := range files {
			if strings.Contains(set, o.only) {
				all[set+"/"+name] = text
			}
		}
	}
	edits, err := planted.Edits()
	if err != nil {
		return nil, err
	}
	for i := range edits {
		add("planted/"+edits[i].Language, edits[i].Old)
	}
	scenarios, err := unseen.Load()
	if err != nil {
		return nil, err
	}
	for _, s := range scenarios {
		add("unseen/"+s.Set+"/"+s.Language, s.Before)
	}
	for _, h := range projects("tuning") {
		if !strings.Contains(h.name, o.only) {
			continue
		}
		dir, err := o.clone(ctx, h.name)
		if err != nil {
			return nil, err
		}
		files, err := filesAt(ctx, dir, h.until)
		if err != nil {
			return nil, err
		}
		add(h.name, files)
	}
	return all, nil
}

// filesAt returns the files of a commit that can be formatted.
func filesAt(ctx context.Context, dir, commit string) (map[string]string, error) {
	names, err := run(ctx, dir, "git", "ls-tree", "-r", "-z", "--name-only", commit)
	if err != nil {
		return nil, err
	}
	blobs, err := startBlobs(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer blobs.stop()
	files := make(map[string]string)
	for name := range strings.SplitSeq(names, "\x00") {
		if slices.ContainsFunc(formatters(), func(f formatter) bool { return f.formats(name) }) {
			if err := blobs.read(files, commit, name); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}
