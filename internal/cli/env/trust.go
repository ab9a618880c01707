package env

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/config/trust"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	loopconfig "github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
	"github.com/perdure/perdure/rlm"
)

// trustVariable trusts the folder for one process, if it is 1, true, yes or on.
const trustVariable = "PERDURE_TRUST"

const (
	trustFlag = "trust"
	// storedNote marks the flag of commands that execute stored trees.
	storedNote = "perdure_stored"
)

// UsesActing adds the flag --trust to a command that uses the settings that act (see
// [config.Acting]). [Env.Load] asks for trust in such a command; in others it ignores
// these settings.
func UsesActing(cmd *cobra.Command) {
	if cmd.Flags().Lookup(trustFlag) != nil {
		return
	}
	cmd.Flags().Bool(trustFlag, false, "use the settings of a folder that is not trusted, in this command only")
}

// ExecutesStored marks a command that executes trees of the store, which can come with a
// repository too. It adds the flag as [UsesActing] does.
func ExecutesStored(cmd *cobra.Command) {
	UsesActing(cmd)
	_ = cmd.Flags().SetAnnotation(trustFlag, storedNote, []string{"true"}) // the flag exists
}

// Untrusted is what would act in a folder that the user does not trust.
type Untrusted struct {
	Dir string `json:"dir"`
	// Trusted is set if the user trusts the folder, also what is listed here.
	Trusted  bool            `json:"trusted"`
	Settings []config.Acting `json:"settings"`
	// Trees are the stored trees that run programs or call models, at most
	// maxListedTrees; TreeCount is their number.
	Trees     []ActingTree `json:"trees"`
	TreeCount int          `json:"tree_count"`
}

// ActingTree is a stored tree that acts when it is executed.
type ActingTree struct {
	Tree   perdure.TreeID `json:"tree_id"`
	Effect string         `json:"effect"`
}

const (
	maxListedTrees = 20
	// maxAskedLines, maxAskedBytes of a line and maxNotedKeys bound what a question and a note
	// list.
	maxAskedLines = 30
	maxAskedBytes = 1000
	maxNotedKeys  = 10
)

// empty reports whether nothing acts in this process: overridden settings do not.
func (u *Untrusted) empty() bool {
	acts := func(a config.Acting) bool { return !a.Overridden }
	return u.TreeCount == 0 && !slices.ContainsFunc(u.Settings, acts)
}

// applyTrust checks settings that act and stored trees against the user's trust records.
// Commands that use them ask the user, or return an error where they cannot; for others it
// ignores the settings.
func (e *Env) applyTrust(cmd *cobra.Command, l *config.Loaded) error {
	u, err := e.NeedsTrust(cmd, l)
	if err != nil || u == nil {
		return err
	}
	if cmd.Flags().Lookup(trustFlag) == nil {
		e.Note("%s is not trusted; ignored settings: %s; `perdure trust --show` lists what they do, `perdure trust` allows "+
			"them", l.Dir, keysOf(l.Acting()))
		l.IgnoreActing()
		return nil
	}
	return e.ask(l, u)
}

// NeedsTrust returns what would act in a command and is not trusted, nil if nothing would.
func (e *Env) NeedsTrust(cmd *cobra.Command, l *config.Loaded) (*Untrusted, error) {
	flag := cmd.Flags().Lookup(trustFlag)
	stored := flag != nil && flag.Annotations[storedNote] != nil
	once, err := e.trustsOnce()
	if err != nil || once || flag != nil && flag.Value.String() == "true" || len(l.Acting()) == 0 && !stored {
		return nil, err
	}
	u, err := e.Untrusted(cmd.Context(), l, stored)
	if err != nil || u.empty() {
		return nil, err
	}
	return &u, nil
}

// trustsOnce reports whether the user trusts the folder for this process.
func (e *Env) trustsOnce() (bool, error) {
	switch text := e.Getenv(trustVariable); strings.ToLower(text) {
	case "1", "true", "yes", "on":
		return true, nil
	case "", "0", "false", "no", "off":
		return false, nil
	default:
		return false, UsageError("use 1 or 0", "%s is %q, not a yes or no", trustVariable, text)
	}
}

// Untrusted returns the settings that act, also overridden ones, because the user would trust
// them, too, and, if stored is set, the stored trees that act and that the user's trust record
// does not cover.
func (e *Env) Untrusted(ctx context.Context, l *config.Loaded, stored bool) (Untrusted, error) {
	u := Untrusted{Dir: l.Dir, Settings: []config.Acting{}, Trees: []ActingTree{}}
	rec := e.trustRecord(l)
	if rec.Settings != l.ActingHash() {
		u.Settings = append(u.Settings, marked(l, rec.Each)...)
	}
	if !stored || l.Store != "" || !HasStore(l) {
		return u, nil
	}
	id, err := trust.StoreID(l.Dir)
	if err == nil && id != "" && id == rec.Store {
		return u, nil
	}
	err = e.WithStore(ctx, l, false, func(store *perdure.Store) error { return u.addTrees(ctx, store) })
	return u, err
}

// marked returns the settings that act, with what changed since the user trusted others.
func marked(l *config.Loaded, trusted map[string]string) []config.Acting {
	list, now := l.AllActing(), l.ActingHashes()
	if len(trusted) == 0 {
		return list
	}
	for i := range list {
		switch before, ok := trusted[list[i].Key]; {
		case !ok:
			list[i].Change = "new"
		case before != now[list[i].Key]:
			list[i].Change = "changed"
		}
	}
	return list
}

// trustRecord returns the record of the folder, or an empty one if it cannot be read, which
// trusts nothing.
func (e *Env) trustRecord(l *config.Loaded) trust.Record {
	records, err := trust.Open(e.Getenv)
	if err != nil {
		return trust.Record{}
	}
	rec, err := records.Read(l.Dir)
	if err != nil {
		return trust.Record{}
	}
	return rec
}

// addTrees adds the trees of a store that act.
func (u *Untrusted) addTrees(ctx context.Context, store *perdure.Store) error {
	const page = 1000
	filter := perdure.TreeFilter{Limit: page}
	for {
		trees, err := store.Trees(ctx, filter)
		if err != nil {
			return err
		}
		for i := range trees {
			effect := treeEffect(&trees[i])
			if effect == "" {
				continue
			}
			u.TreeCount++
			if len(u.Trees) == maxListedTrees {
				continue
			}
			if trees[i].Kind == perdure.KindLoop {
				effect = loopEffect(ctx, store, &trees[i])
			}
			u.Trees = append(u.Trees, ActingTree{trees[i].ID, effect})
		}
		if len(trees) < page {
			return nil
		}
		filter.Before = trees[len(trees)-1].ID
	}
}

// loopActs is what a loop does of which the configuration cannot be read.
const loopActs = "runs an agent and a check"

// loopEffect returns what a loop runs by the configuration that it would be continued with.
func loopEffect(ctx context.Context, store *perdure.Store, t *perdure.Tree) string {
	row, err := record.New(store).Loop(ctx, t.ID)
	if err != nil && perdure.CodeOf(err) != perdure.CodeNotFound {
		return loopActs + ", which cannot be read"
	}
	cfg, err := loopconfig.Of(t, &row)
	if err != nil {
		return loopActs + ", which cannot be read"
	}
	return cfg.Runs()
}

// treeEffect returns what a tree does besides answering from its context, or "".
func treeEffect(t *perdure.Tree) string {
	if t.Kind == perdure.KindLoop {
		return loopActs
	}
	var c rlm.Config
	if len(t.Config) > 0 && json.Unmarshal(t.Config, &c) != nil {
		return "has a configuration that cannot be read"
	}
	var all []string
	add := func(effect string) {
		if !slices.Contains(all, effect) {
			all = append(all, effect)
		}
	}
	for _, name := range c.Models() {
		if effect := config.ModelEffect(name); effect != "" {
			add(effect + ": " + name)
		}
	}
	for _, url := range c.Endpoints() {
		if len(all) > 0 { // else there is no model that would be asked there
			add("sends requests and the API key to " + url)
		}
	}
	return strings.Join(all, "; ")
}

// ask shows what would act and asks the user at the terminal whether to trust the folder. It does
// not ask about a list that is too long to be shown as a whole.
func (e *Env) ask(l *config.Loaded, u *Untrusted) error {
	e.Note("%s is not trusted; it can come with a repository. If you trust it:", u.Dir)
	lines := u.Lines()
	for _, line := range lines[:min(len(lines), maxAskedLines)] {
		e.Note("  %s", e.Err.Safe(clip.Bytes(line, maxAskedBytes)))
	}
	if more := len(lines) - maxAskedLines; more > 0 {
		e.Note("  and %s", human.Count(more, "more line"))
	}
	refused := &perdure.Error{Code: perdure.CodeInvalid, Msg: u.Dir + " is not trusted",
		Hint: "read the list, then `perdure trust`; --trust or PERDURE_TRUST=1 trusts it for one command"}
	if !Short(lines) {
		refused.Hint = "the list is cut here: read it with `perdure trust --show`, then `perdure trust`"
		return refused
	}
	if !e.Agrees("trust this folder?") {
		return refused
	}
	return e.TrustFolder(l)
}

// Short reports whether lines of [Untrusted.Lines] can be shown as a whole in a question.
func Short(lines []string) bool {
	return len(lines) <= maxAskedLines &&
		!slices.ContainsFunc(lines, func(line string) bool { return len(line) > maxAskedBytes })
}

// Agrees asks the user a question at the terminal and reports whether the answer is yes. It
// is false where the user cannot be asked, and for programs that a loop or a run has started,
// which can open a terminal themselves.
func (e *Env) Agrees(question string) bool {
	if !e.CanAsk() || guard.Guarded() {
		return false
	}
	fmt.Fprint(e.Err, question+" [y/N] ")
	answer, err := readLine(e.Stdin)
	return err == nil && slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer)))
}

// Lines returns what would act, one a line, what is new or changed first.
func (u *Untrusted) Lines() []string {
	var lines, others []string
	for _, a := range u.Settings {
		effect := a.Effect
		if a.Overridden {
			effect += "; a flag or variable overrides it now"
		}
		line := fmt.Sprintf("%s: %s (%s)", a.Key, cmp.Or(a.Value, `""`), effect)
		if a.Change == "" {
			others = append(others, line)
			continue
		}
		lines = append(lines, a.Change+": "+line)
	}
	lines = append(lines, others...)
	for _, t := range u.Trees {
		lines = append(lines, fmt.Sprintf("%s %s", t.Tree, t.Effect))
	}
	if more := u.TreeCount - len(u.Trees); more > 0 {
		lines = append(lines, fmt.Sprintf("%s more", human.Count(int64(more), "tree")))
	}
	return lines
}

// TrustFolder records that the user trusts the acting settings and the store of a folder.
func (e *Env) TrustFolder(l *config.Loaded) error {
	if err := e.record(l, func(rec *trust.Record) {
		rec.Settings, rec.Each = l.ActingHash(), l.ActingHashes()
	}); err != nil {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "trust folder", Err: err,
			Hint: "check HOME and the permissions of the configuration folder, or use --trust"}
	}
	return nil
}

// trustNewStore records a store that this process creates. It is called before anything is
// stored, so that a process that is killed leaves no tree in a store without a record. After
// an error the next command that executes its trees asks; see [Env.NoteTrust].
func (e *Env) trustNewStore(l *config.Loaded) {
	e.trustErr = e.record(l, func(*trust.Record) {})
}

// trustReplaced trusts the database that replaced the one with the given ID, if that was trusted.
func (e *Env) trustReplaced(l *config.Loaded, id string) {
	if id != "" && e.trustRecord(l).Store == id {
		e.trustNewStore(l)
	}
}

// NoteTrust notes that a new tree runs programs or connects and that its store has no trust
// record, which a later command needs to continue the tree.
func (e *Env) NoteTrust(b *Backend, t *perdure.Tree) {
	l := b.Config
	if once, err := e.trustsOnce(); once || err != nil || b.Local == nil || l.Store != "" || treeEffect(t) == "" {
		return
	}
	id, err := trust.StoreID(l.Dir)
	if err != nil || id == e.trustRecord(l).Store {
		return
	}
	if e.trustErr != nil {
		e.Note("warning: cannot record that you trust this store: %s", human.Visible(e.trustErr.Error()))
		e.Hint("a command that continues the tree later needs --trust; or set XDG_CONFIG_HOME to a writable folder and " +
			"type `perdure trust`")
		return
	}
	e.Note("warning: %s is not trusted; a command that continues the tree later asks, or needs --trust", l.Dir)
	e.Hint("`perdure trust --show` lists what is not trusted, `perdure trust` trusts it")
}

// record writes the record of a folder with its store and what change changes.
func (e *Env) record(l *config.Loaded, change func(*trust.Record)) error {
	records, err := trust.Open(e.Getenv)
	if err != nil {
		return err
	}
	rec, err := records.Read(l.Dir)
	if err != nil {
		return err
	}
	if rec.Store, err = trust.StoreID(l.Dir); err != nil {
		return err
	}
	change(&rec)
	return records.Write(rec)
}

func keysOf(list []config.Acting) string {
	var keys []string
	for _, a := range list[:min(len(list), maxNotedKeys)] {
		keys = append(keys, a.Key)
	}
	text := strings.Join(keys, ", ")
	if more := len(list) - maxNotedKeys; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// readLine reads up to the end of a line and no further, because the command can read the
// rest. Longer lines are cut at 1,000 bytes.
func readLine(r io.Reader) (string, error) {
	var line []byte
	one := make([]byte, 1)
	for len(line) < 1000 {
		n, err := r.Read(one)
		if n == 1 {
			if one[0] == '\n' {
				break
			}
			line = append(line, one[0])
		}
		if err != nil {
			return string(line), err
		}
	}
	return string(line), nil
}
