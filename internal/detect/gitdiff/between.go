package gitdiff

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// Between are two versions of the files.
type Between struct {
	// Base is the commit or tree that is compared with, as an ID. Trusted is the
	// one that was named; it differs from Base where that is what both have in
	// common.
	Base, Trusted string
	// Now is the commit that is looked at; empty: the index when Staged is set, or
	// else the files as they are.
	Now    string
	Staged bool
	// First tells that there is no commit yet: Base is the empty tree.
	First bool
	// Text says in words what is compared.
	Text string
	// other is the other side of a merge that is under way, whose changes are not
	// this commit's.
	other string
}

// Resolve says what a base means. Empty: the last commit, or nothing before the
// first one. A revision: what it has in common with the last commit, as reviews
// compare. A..B and A...B: as git diff reads them, B as it is in git. Otherwise
// what is looked at is the index (staged), or the files as they are with those that
// git does not know yet.
func (r *Repository) Resolve(ctx context.Context, base string, staged bool) (*Between, error) {
	const op = "find base"
	head, err := r.object(ctx, "HEAD^{commit}")
	if err != nil {
		return nil, err
	}
	b := &Between{Staged: staged}
	now := "the files as they are"
	if staged {
		now = "what is staged"
	}
	from, to, both := strings.Cut(base, "..")
	switch {
	case both && staged:
		return nil, &perdure.Error{Code: perdure.CodeInvalid, Op: op,
			Msg: fmt.Sprintf("%q names both versions, --staged another one", base), Hint: "leave one of them out"}
	case both:
		return r.ranged(ctx, from, to)
	case head == "" && (base == "" || base == "HEAD"):
		b.First, b.Text = true, now+" with nothing: there is no commit yet"
		b.Base, err = r.line(ctx, "hash-object", "-t", "tree", "--stdin")
		return b, err
	case base == "":
		base = "HEAD"
	}
	if b.Trusted, err = r.named(ctx, base); err != nil {
		return nil, err
	}
	b.Base = b.Trusted
	b.Text = fmt.Sprintf("%s with %s", now, base)
	if b.Trusted == head {
		b.other, err = r.object(ctx, "MERGE_HEAD^{commit}")
		return b, err
	}
	commit, err := r.object(ctx, b.Trusted+"^{commit}")
	if err != nil || commit == "" || head == "" { // a tree has no past
		return b, err
	}
	if b.Base, err = r.common(ctx, base, commit, head); err != nil {
		return nil, err
	}
	if b.Base != b.Trusted {
		b.Text += fmt.Sprintf(" where this branch left it (%.12s)", b.Base)
	}
	return b, nil
}

// ranged resolves A..B and A...B.
func (r *Repository) ranged(ctx context.Context, from, to string) (*Between, error) {
	to, common := strings.CutPrefix(to, ".")
	if from == "" {
		from = "HEAD"
	}
	if to == "" {
		to = "HEAD"
	}
	var b Between
	var err error
	if b.Trusted, err = r.named(ctx, from); err != nil {
		return nil, err
	}
	if b.Now, err = r.named(ctx, to); err != nil {
		return nil, err
	}
	b.Base, b.Text = b.Trusted, fmt.Sprintf("%s with %s", to, from)
	if common {
		if b.Base, err = r.common(ctx, from, b.Trusted, b.Now); err != nil {
			return nil, err
		}
		if b.Base != b.Trusted {
			b.Text += fmt.Sprintf(" where they parted (%.12s)", b.Base)
		}
	}
	return &b, nil
}

// named finds a commit, or else a tree.
func (r *Repository) named(ctx context.Context, name string) (string, error) {
	const op = "find base"
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\x00\n") {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: op, Msg: fmt.Sprintf("%q is no revision", name),
			Hint: "name a commit, a branch or a tag"}
	}
	for _, kind := range []string{"commit", "tree"} {
		id, err := r.object(ctx, name+"^{"+kind+"}")
		if err != nil || id != "" {
			return id, err
		}
	}
	hint := "git branch -a and git tag list names; " + shallowHint
	return "", &perdure.Error{Code: perdure.CodeNotFound, Op: op,
		Msg: fmt.Sprintf("git knows no revision %q here", name), Hint: hint}
}

const shallowHint = "in a clone without its past fetch it first (git fetch --unshallow, or fetch-depth: 0 in CI)"

// common is the best commit that two have in common.
func (r *Repository) common(ctx context.Context, name, a, b string) (string, error) {
	id, err := r.line(ctx, "merge-base", a, b)
	var ran *Error
	if errors.As(err, &ran) {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: "find base",
			Msg:  fmt.Sprintf("%q has no commit in common with what is looked at", name),
			Hint: shallowHint + "; --base " + name + "..HEAD compares the two as they are"}
	}
	return id, err
}
