//go:build unix

package rlm_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// TestReplEngineKilledAtStart: an interpreter that is killed while it starts is started again.
func TestReplEngineKilledAtStart(t *testing.T) {
	t.Parallel()
	_, m := endpoint(t, turns("", block("FINAL(6 * 7)")))
	b := newBench(t, m)
	b.ok(b.exec.Close())
	python := filepath.Join(b.dir, "python")
	b.ok(os.WriteFile(python, []byte("#!/bin/sh\n"+`[ -e "$0.killed" ] && exec python3 "$@"`+
		"\n"+`: > "$0.killed"; kill -9 $$`+"\n"), 0o700)) //nolint:gosec // a program
	var err error
	b.exec, err = rlm.New(rlm.ExecutorConfig{Store: b.store, Resolver: m, Python: python})
	b.ok(err)
	config := replConfig("openai:m")
	config["max_attempts"] = 1
	tree := b.launch("What?", "", config)
	got, root := b.finish(tree.ID, 1)
	if got.State != perdure.Completed || root.Result != "42" {
		t.Errorf("tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
	if _, err := os.Stat(python + ".killed"); err != nil {
		t.Errorf("the interpreter was not killed: %v", err)
	}
}
