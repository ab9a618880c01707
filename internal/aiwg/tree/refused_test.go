package tree_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/statetest"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A strict import refuses what the schemas refuse, also where reading takes it for nothing, and
// what would be lost or get another ID; and it says where.
func TestStrictRefuses(t *testing.T) {
	t.Parallel()
	const (
		tasks = "daemon/tasks.json"
		of    = "rlm/trees/tree-00000001/tree.json"
		state = "rlm/sessions/one/state.json"
		when  = `"createdAt":"2026-02-09T10:00:00Z"`
	)
	task := func(more string) string { return `{"version":1,"tasks":[{"state":"queued",` + when + more + `}]}` }
	for name, c := range map[string]struct{ file, text, want string }{
		"a prompt that is null": {tasks, task(`,"id":"task-0001","prompt":null,"metadata":{}`), "prompt"},
		"no ID":                 {tasks, task(`,"prompt":"p","metadata":{}`), "id"},
		"null metadata":         {tasks, task(`,"id":"task-0001","prompt":"p","metadata":null`), "metadata"},
		"a process in words":    {tasks, task(`,"id":"task-0001","prompt":"p","metadata":{},"pid":"x"`), "pid"},
		"a policy that is empty": {tasks, task(`,"id":"task-0001","prompt":"p","metadata":{"failure_policy":""}`),
			"failure_policy"},
		"the same ID twice in one file": {tasks, `{"version":1,"tasks":[
			{"id":"task-0001","prompt":"a","state":"queued",` + when + `,"metadata":{}},
			{"id":"task-0001","prompt":"b","state":"queued",` + when + `,"metadata":{}}]}`, "task-0001"},
		"half of a surrogate pair": {tasks, task(`,"id":"task-0001","prompt":"a\ud800b","metadata":{}`), "surrogate"},
		"a child that is no node": {of, `{"version":"1.0.0","tree_id":"tree-00000001","root_task":{"node_id":"task-0000000a",
			"prompt":"p","status":"pending","children":[""]}}`, "child"},
		"a name of a variable that is null": {state, `{"version":"1.0.0","state_id":"state-00000001","variables":{"a":
			{"name":null,"value":1,"type":"number"}}}`, "name"},
		"a size below zero": {state, `{"version":"1.0.0","state_id":"state-00000001","variables":{},
			"metadata":{"total_size_bytes":-1}}`, "total_size_bytes"},
		"an export that did not end": {tasks + ".part", `{"version":1,"tasks":[`, "did not end"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			files := []txtar.File{{Name: c.file, Data: []byte(c.text)}}
			if c.file == tasks+".part" {
				files = append(files, txtar.File{Name: "rlm/global-state.json", Data: []byte(
					`{"version":"1.0.0","state_id":"state-00000001","variables":{}}`)})
			}
			dir, _ := unpack(t, &txtar.Archive{Files: files})
			r := must[*tree.Report](t)(tree.Import(t.Context(), s, tree.ImportConfig{Path: dir, Strict: true}))
			found := ""
			for _, n := range r.Notes {
				if strings.Contains(n.Message, c.want) && n.File == c.file {
					found = n.Message
				}
			}
			if !r.Refused || found == "" {
				t.Errorf("refused %v, notes %+v, want one on %q", r.Refused, r.Notes, c.want)
			}
			if list := must[[]perdure.Tree](t)(s.Trees(t.Context(), perdure.TreeFilter{})); len(list) > 0 {
				t.Errorf("%d trees were imported", len(list))
			}
		})
	}
}

// A variable whose time to live is over is not in an export, and its end is in the history: the
// export comes in strictly, and out again as it was.
func TestExpiredVariables(t *testing.T) {
	t.Parallel()
	a, b := testdb.Open(t, perdure.Config{Dir: t.TempDir()}), testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	ref := perdure.StateRef{Scope: perdure.ScopeGlobal}
	set(t, a, ref, "stays", "1")
	for _, name := range []string{"soon", "too"} {
		_, err := a.SetVar(t.Context(), ref,
			perdure.VarSpec{Name: name, Value: json.RawMessage("2"), TTL: time.Microsecond})
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := exportTo(t, a)
	first := content(t, dir)
	if text := first["rlm/global-state.json"]; strings.Count(text, `"delete"`) != 2 {
		t.Errorf("the ends of two variables are not in the history:\n%s", text)
	}
	r := must[*tree.Report](t)(tree.Import(t.Context(), b, tree.ImportConfig{Path: dir, Strict: true}))
	if r.Refused || len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(first, content(t, exportTo(t, b))); diff != "" {
		t.Errorf("the second export differs (-first +second):\n%s", diff)
	}
}

// Imports of one folder at the same time import each record once.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		a := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
		lived(t, a)
		dir := exportTo(t, a)
		var all sync.WaitGroup
		var mu sync.Mutex
		trees, tasks := 0, 0
		for range 6 {
			all.Go(func() {
				r, err := tree.Import(t.Context(), s, tree.ImportConfig{Path: dir})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				trees, tasks = trees+r.Trees, tasks+r.Tasks
			})
		}
		all.Wait()
		if trees != 2 || tasks != 6 {
			t.Errorf("%d trees and %d tasks were imported, want each once", trees, tasks)
		}
		if err := statetest.Sound(context.WithoutCancel(t.Context()), s); err != nil {
			t.Error(err)
		}
	})
}

// Files of an export have the same rights, whatever the user's mask leaves out.
func TestModesOfExport(t *testing.T) {
	t.Parallel()
	a := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	lived(t, a)
	dir := exportTo(t, a)
	want := must[os.FileInfo](t)(os.Stat(filepath.Join(dir, "rlm/global-state.json"))).Mode()
	got := must[os.FileInfo](t)(os.Stat(filepath.Join(dir, "daemon/tasks.json"))).Mode()
	if got != want || got.Perm()&0o022 != 0 {
		t.Errorf("daemon/tasks.json has mode %s, the other files %s", got, want)
	}
}
