package gitdiff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// Between is a pair of versions of the files.
type Between struct {
	// Base is the ID of the commit or tree that the files are compared with. Trusted is the
	// one that the user named; it differs from Base if Base is the merge base.
	Base, Trusted string
	// Now is the commit that is compared; empty for the index if Staged is set, or else for
	// the working tree.
	Now    string
	Staged bool
	// First is set if there is no commit yet: Base is the empty tree.
	First bool
	// Text describes the comparison.
	Text string
	// other is the other side of a merge in progress, whose changes do not belong to this
	// commit.
	other string
}

// Resolve returns the versions that base names. Empty is the last commit, or an empty
// tree before the first one. A revision stands for its merge base with the last commit,
// as in reviews. A..B and A...B are read as git diff reads them, with B as committed.
// Otherwise the second version is the index (staged), or the working tree with its
// untracked files.
func (r *Repository) Resolve(ctx context.Context, base string, staged bool) (*Between, error) {
	const op = "find base"
	head, err := r.object(ctx, "HEAD^{commit}")
	if err != nil {
		return nil, err
	}
	b := &Between{Staged: staged}
	now := "working tree"
	if staged {
		now = "index"
	}
	from, to, both := strings.Cut(base, "..")
	switch {
	case both && staged:
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
			Msg:  fmt.Sprintf("base %q names both versions, and --staged is set", base),
			Hint: "use either --base A..B or --staged"}
	case both:
		return r.ranged(ctx, from, to)
	case head == "" && (base == "" || base == "HEAD"):
		b.First, b.Text = true, now+" compared with an empty tree: there is no commit yet"
		b.Base, err = r.line(ctx, "hash-object", "-t", "tree", "--stdin")
		return b, err
	case base == "":
		base = "HEAD"
	}
	if b.Trusted, err = r.named(ctx, base); err != nil {
		return nil, err
	}
	b.Base = b.Trusted
	b.Text = fmt.Sprintf("%s compared with %s", now, base)
	if b.Trusted == head {
		b.other, err = r.object(ctx, "MERGE_HEAD^{commit}")
		return b, err
	}
	commit, err := r.object(ctx, b.Trusted+"^{commit}")
	if err != nil || commit == "" || head == "" { // a tree has no history
		return b, err
	}
	if b.Base, err = r.common(ctx, base, commit, head); err != nil {
		return nil, err
	}
	if b.Base != b.Trusted {
		b.Text += fmt.Sprintf(" (merge base %.12s)", b.Base)
	}
	return b, nil
}

// ranged resolves A..B and A...B.
func (r *Repository) ranged(ctx context.Context, from, to string) (*Between, error) {
	to, common := strings.CutPrefix(to, ".")
	from, to = cmp.Or(from, "HEAD"), cmp.Or(to, "HEAD")
	var b Between
	var err error
	if b.Trusted, err = r.named(ctx, from); err != nil {
		return nil, err
	}
	if b.Now, err = r.named(ctx, to); err != nil {
		return nil, err
	}
	b.Base, b.Text = b.Trusted, fmt.Sprintf("%s compared with %s", to, from)
	if common {
		if b.Base, err = r.common(ctx, from, b.Trusted, b.Now); err != nil {
			return nil, err
		}
		if b.Base != b.Trusted {
			b.Text += fmt.Sprintf(" (merge base %.12s)", b.Base)
		}
	}
	return &b, nil
}

// named returns the ID of a commit, or else of a tree.
func (r *Repository) named(ctx context.Context, name string) (string, error) {
	const op = "find base"
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\x00\n") {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("invalid revision %q", name),
			Hint: "use a commit, a branch or a tag"}
	}
	for _, kind := range []string{"commit", "tree"} {
		id, err := r.object(ctx, name+"^{"+kind+"}")
		if err != nil || id != "" {
			return id, err
		}
	}
	hint := "git branch -a and git tag list branches and tags; " + shallowHint
	return "", &perdure.Error{Code: perdure.CodeNotFound, Op: op,
		Msg: fmt.Sprintf("unknown revision %q", name), Hint: hint}
}

const shallowHint = "in a shallow clone fetch the history first (git fetch --unshallow, or fetch-depth: 0 in CI)"

// common returns the merge base of two commits.
func (r *Repository) common(ctx context.Context, name, a, b string) (string, error) {
	id, err := r.line(ctx, "merge-base", a, b)
	var ran *Error
	if errors.As(err, &ran) {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: "find base",
			Msg:  fmt.Sprintf("%q has no commit in common with the compared version", name),
			Hint: shallowHint + "; --base " + name + "..HEAD compares both without a merge base"}
	}
	return id, err
}
