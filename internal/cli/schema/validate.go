package schema

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/schema"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// maxDocument is the limit of a document to validate in bytes.
const maxDocument = 1 << 28

// report is the output of validate --json.
type report struct {
	File   string         `json:"file"`
	Schema string         `json:"schema"`
	Valid  bool           `json:"valid"`
	Faults []schema.Fault `json:"faults"`
}

// ValidateCommand returns the command validate.
func ValidateCommand(e *env.Env) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Validate files with the published schemas",
		Long: "Validate files with the published JSON Schemas, and list each fault with file, line, column and field. The " +
			"schema is that of the file's name or members: tasks.json, tree.json and its nodes, state.json of trees and " +
			"loops, analytics.json, checkpoints, hook-log.jsonl, builder-state.json, logs of recursive language models; " +
			"--schema sets it. Files that end in .gz are unpacked; of files that end in .jsonl, each line is a document. If " +
			"a file is invalid, the exit status is 1. A file of no published kind is an error after the other files are " +
			"validated.",
		Example: "perdure validate .aiwg/daemon/tasks.json\n perdure validate --schema event events.jsonl",
		GroupID: env.GroupManage,
		Args:    env.Arguments(1, -1, "files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := schema.FS.ReadFile(name + ".json"); name != "" && err != nil {
				unknown := env.Unknown("schema", name, Names())
				unknown.Code = perdure.CodeNotFound
				return unknown
			}
			return validateAll(cmd.Context(), e, name, args)
		},
	}
	cmd.Flags().StringVar(&name, "schema", "", "`NAME` of the schema, as `perdure schema` lists them")
	env.Complete(cmd, "schema", Names()...)
	e.JSONFlag(cmd)
	return cmd
}

func validateAll(ctx context.Context, e *env.Env, name string, files []string) error {
	c, err := schema.NewChecker()
	if err != nil {
		return err
	}
	reports := make([]report, 0, len(files))
	valid := true
	var failed []error
	for _, file := range files {
		r, err := validate(ctx, c, e.Path(file), name)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		r.File = file
		reports = append(reports, r)
		valid = valid && r.Valid
	}
	if len(failed) > 0 && len(reports) == 0 {
		return errors.Join(failed...)
	}
	err = e.Print(reports, func() {
		for i := range reports {
			printReport(e, &reports[i])
		}
	})
	if err == nil {
		err = errors.Join(failed...)
	}
	if err == nil && !valid {
		err = &env.Exit{Status: env.StatusFailed}
	}
	return err
}

func printReport(e *env.Env, r *report) {
	if r.Valid {
		e.Printf("%s: valid (%s)\n", r.File, r.Schema)
	}
	for _, f := range r.Faults {
		field := f.Field
		if field == "" {
			field = "the document"
		}
		kind := ""
		if r.Schema != "" { // unknown of a document that cannot be read
			kind = " (" + r.Schema + ")"
		}
		e.Printf("%s:%d:%d: %s %s%s\n", r.File, f.Line, f.Column, human.Visible(field), human.Visible(f.Message), kind)
	}
}

// validate validates a file with the schema of the name, by default the one of its kind.
func validate(ctx context.Context, c *schema.Checker, file, name string) (report, error) {
	text, err := readUntil(ctx, file)
	if err != nil {
		return report{}, err
	}
	r := report{Faults: []schema.Fault{}, Schema: name}
	lines, whole := jsontree.NewLines(text), !strings.HasSuffix(strings.TrimSuffix(file, ".gz"), ".jsonl")
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 && !whole {
			end = at + i + 1
		}
		if whole || len(bytes.TrimSpace(text[at:end])) > 0 {
			if err := r.document(c, lines, text[:end], at, file); err != nil {
				return r, err
			}
		}
		at = end
	}
	if r.Schema == "" && len(r.Faults) == 0 { // no lines
		if err := r.setKind(file, nil); err != nil {
			return r, err
		}
	}
	r.Valid = len(r.Faults) == 0
	return r, nil
}

// document adds the faults of the document that begins at an offset.
func (r *report) document(c *schema.Checker, lines *jsontree.Lines, text []byte, at int, file string) error {
	v, err := jsontree.Parse(text, jsontree.Options{From: at})
	if bad, ok := errors.AsType[*jsontree.Error](err); ok {
		f := schema.Fault{Offset: bad.Offset, Message: "is invalid JSON: " + bad.Msg}
		f.Line, f.Column = lines.Position(bad.Offset)
		r.Faults = append(r.Faults, f)
		return nil
	}
	if err != nil {
		return err
	}
	if r.Schema == "" {
		if err := r.setKind(file, v); err != nil {
			return err
		}
	}
	for _, f := range append(schema.Repeated(v), c.Faults(r.Schema, v)...) {
		f.Line, f.Column = lines.Position(f.Offset)
		r.Faults = append(r.Faults, f)
	}
	return nil
}

// readUntil reads a file. When ctx ends it returns, also while a named pipe has no writer.
func readUntil(ctx context.Context, file string) ([]byte, error) {
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read(file)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// setKind sets the schema to that of the kind of a document.
func (r *report) setKind(file string, v *jsontree.Value) error {
	if r.Schema = schema.KindOf(file, v); r.Schema == "" {
		return env.UsageError("add --schema NAME", "%q is of no published kind", file)
	}
	return nil
}

// read reads a file, unpacked if its name ends in .gz.
func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "validate", Msg: fmt.Sprintf("cannot read %q", file),
			Err: err}
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, env.UsageError("name a packed file", "%q cannot be unpacked: %v", file, err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %q: %w", file, err)
	case len(text) > maxDocument:
		return nil, env.UsageError("validate a part of it", "%q has more than the limit of %d bytes", file, maxDocument)
	case len(text) == 0:
		return []byte(" "), nil // a document that is missing
	}
	return text, nil
}
