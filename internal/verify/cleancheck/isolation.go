package cleancheck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/verify/machine"
)

// Isolation says what separated a check from the rest of the machine. What is not set did
// not hold.
type Isolation struct {
	// Network is set if the check could reach no other program by network, Writes if it
	// could not write outside of the copy. Why is the reason if not.
	Network bool   `json:"network"`
	Writes  bool   `json:"writes"`
	Why     string `json:"why,omitempty"`
	// Setup is set if a setup command with network ran before it in the same copy.
	Setup bool `json:"setup,omitempty"`
	// Home is set if the home folder, the folders for temporary files and the build caches
	// were new, and Environment if the variables were those of an allow-list.
	Home        bool `json:"home"`
	Environment bool `json:"environment"`
	// Path is set if PATH and the programs of the check were compared with those at the
	// loop's start, Caches if all shared caches of downloaded packages were.
	Path   bool `json:"path"`
	Caches bool `json:"caches"`
	// Shared are the names of the shared caches.
	Shared []string `json:"shared,omitempty"`
}

// Words describes in a few words what a reader of a result has to know, after a comma; it
// is empty for a result of an older version.
func (i *Isolation) Words() string {
	if i == nil {
		return ""
	}
	var lacks []string
	switch {
	case !i.Network && !i.Writes:
		lacks = append(lacks, "with access to the network and to files outside")
	case !i.Network:
		lacks = append(lacks, "with access to the network")
	}
	if !i.Path {
		lacks = append(lacks, "with programs that were not compared")
	}
	if !i.Caches {
		lacks = append(lacks, "with caches that were not compared")
	}
	switch {
	case len(lacks) > 0:
	case i.Setup:
		return ", after a setup with network, without network and writes outside"
	default:
		return ", without network and writes outside"
	}
	return ", " + strings.Join(lacks, ", ")
}

// Machine is what a check used at the loop's start; see [machine.Find] and
// [machine.Record].
type Machine struct {
	Tools *machine.Tools
	// Files is the record of the shared caches and of the folders of PATH.
	Files []byte
}

// RecordMachine records what a check with these programs uses of the machine.
func RecordMachine(ctx context.Context, env []string, root string, programs []string) (*Machine, error) {
	tools, err := machine.Find(ctx, env, root, programs)
	if err != nil {
		return nil, err
	}
	files, err := machine.Record(ctx, slices.Concat(machine.Caches(env), machine.Programs(tools.Path, root),
		machine.Selections(env), machine.Settings(env)))
	return &Machine{Tools: tools, Files: files}, err
}

// compareMachine compares the machine with the loop's start. It selects the caches to
// share, and sets a verdict if a program of the check was replaced.
func (s *sealing) compareMachine(ctx context.Context) error {
	i := s.v.Isolation
	s.caches = machine.Existing(machine.Caches(s.env))
	if s.Machine == nil || s.Machine.Tools == nil {
		s.share(nil) // a loop of an older version: nothing is known of its start
		return nil
	}
	tools, root := s.Machine.Tools, s.Files.Root()
	s.env = machine.Set(s.env, "PATH", tools.Path)
	replaced, err := tools.Replaced(ctx, root)
	if err != nil {
		return err
	}
	if len(replaced) > 0 {
		s.failed(detect.ValidationBypass, "programs of the check were replaced during the loop: "+some(replaced)+
			". Approve it if you updated them", nil, nil)
		s.v.Machine = true
		return nil
	}
	i.Path = true
	groups := [][]machine.Cache{s.caches, machine.Programs(tools.Path, root), machine.Selections(s.env),
		machine.Settings(s.env)}
	results, err := machine.Compare(ctx, s.Machine.Files, slices.Concat(groups...))
	if err != nil {
		return err
	}
	var changed [][]machine.Compared // by group
	for _, group := range groups {
		changed, results = append(changed, results[:len(group)]), results[len(group):]
	}
	others, selections := allChanged(changed[1]), allChanged(changed[2])
	if len(selections) > 0 {
		s.failed(detect.ValidationBypass, "files that select versions of tools were changed during the loop: "+
			some(selections)+". Approve it if you changed them", nil, nil)
		s.v.Machine = true
		return nil
	}
	if len(others) > 0 {
		s.note("programs on PATH that the check does not name were changed during the loop: " + some(others))
	}
	if s.changedSettings = allChanged(changed[3]); len(s.changedSettings) > 0 {
		s.note(settingsChanged(s.changedSettings) + "; clean copies do not use them")
	}
	s.share(changed[0])
	return nil
}

// settingsChanged names changed files with settings of the user.
func settingsChanged(files []string) string {
	return "settings of Go (`go env -w`) were changed during the loop: " + some(files)
}

// allChanged returns the changed files of several results.
func allChanged(results []machine.Compared) []string {
	var all []string
	for _, r := range results {
		all = append(all, r.Changed...)
	}
	return all
}

// share drops the caches that were changed. compared has a result for
// each; nil: they were not compared.
func (s *sealing) share(compared []machine.Compared) {
	var shared []machine.Cache
	i := s.v.Isolation
	i.Caches = compared != nil
	for n, c := range s.caches {
		if compared != nil && len(compared[n].Changed) > 0 {
			s.excluded = append(s.excluded, compared[n].Changed...)
			s.note(fmt.Sprintf("%s not used, because files in it were added, changed or removed during the loop: %s", c.Name,
				some(compared[n].Changed)))
			continue
		}
		if compared != nil && compared[n].Unchecked != "" {
			i.Caches = false
			s.note(fmt.Sprintf("%s not compared with the loop's start: %s", c.Name, compared[n].Unchecked))
		}
		shared, i.Shared = append(shared, c), append(i.Shared, c.Name)
	}
	s.caches = shared
}

// open ends the use of the sandbox for the rest of the check.
func (s *sealing) open(why string) {
	s.confined = false
	s.v.Isolation.Network, s.v.Isolation.Writes, s.v.Isolation.Why = false, false, why
}

// unlessRefused calls do, and once more without the sandbox if the system refuses it. Other
// reasons for which there is none make the copy impossible: an agent could cause them.
func (s *sealing) unlessRefused(at *Place, do func() error) error {
	err := do()
	failed, ok := errors.AsType[*sandbox.Error](err)
	switch {
	case !ok || at.Sandbox == nil:
		return err
	case !failed.Refused:
		return &copyError{fmt.Errorf("make sandbox: %w", failed)}
	}
	s.open("the system refuses a sandbox: " + failed.Error())
	at.Sandbox = nil
	return do()
}

// checkOpen repeats a check without the sandbox if even the baseline fails in it.
func (s *sealing) checkOpen(ctx context.Context) error {
	if s.v.State != Impossible || s.v.Unconfirmed || !s.confined {
		return nil
	}
	s.open(BaselineNeedsMore)
	s.v.State, s.v.Why = Passed, ""
	return s.check(ctx)
}

// BaselineNeedsMore is why a sandbox was not used if even the baseline fails in it.
const BaselineNeedsMore = "the baseline does not pass without network and writes outside of the copy"

// failIfExcluded makes an impossible check fail if a cache or settings that the agent changed
// were excluded: otherwise an agent could avoid the check, or its sandbox, by changing them.
func (s *sealing) failIfExcluded() {
	if s.v.State != Impossible || len(s.excluded)+len(s.changedSettings) == 0 {
		return
	}
	files := slices.Concat(s.excluded, s.changedSettings)
	why := "the check cannot be repeated without files outside of the workspace that were added, changed or removed " +
		"during the loop: " + some(files)
	if len(s.changedSettings) > 0 {
		why += "; " + settingsChanged(s.changedSettings)
	}
	s.failed(detect.ValidationBypass, why+". Approve it if you changed them", nil, files)
	s.v.Machine = true
}
