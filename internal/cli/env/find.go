package env

import (
	"context"
	"strings"

	"github.com/perdure/perdure"
)

// CheckTree returns an error if an argument is neither the ID of a tree or a loop nor the beginning of the
// ID of a tree.
func CheckTree(arg string) error {
	if _, _, ok := perdure.ParseLoopID(arg); ok {
		return nil
	}
	_, err := perdure.ParseTreeID(arg)
	digits, ok := strings.CutPrefix(arg, "tree-")
	if ok && len(digits) >= 4 && len(digits) < 8 && strings.Trim(digits, "0123456789abcdef") == "" {
		return nil
	}
	return err
}

// FindTree returns the ID of the tree that an argument names: its ID, the beginning of it, or the ID of its
// loop.
func (b *Backend) FindTree(ctx context.Context, arg string) (perdure.TreeID, error) {
	id, err := perdure.ParseTreeID(arg)
	if err == nil {
		return id, nil
	}
	if err := CheckTree(arg); err != nil {
		return "", err
	}
	t, err := b.Tree(ctx, perdure.TreeID(arg))
	return t.ID, err
}

// leastTaskPrefix is the lowest number of a task that can be the beginning of another one: lower ones
// are written with zeros.
const leastTaskPrefix = 1000

// FindTask returns the task that a number names: the one with it, or the only one whose number begins
// with it.
func (b *Backend) FindTask(ctx context.Context, id perdure.TaskID) (perdure.TaskID, error) {
	if id < leastTaskPrefix {
		return id, nil
	}
	t, err := b.Task(ctx, id)
	return t.ID, err
}

// TreeOrNewest returns the tree that the first argument names, or else the newest tree of a
// kind, "" for any, and notes which one that is.
func (e *Env) TreeOrNewest(ctx context.Context, b *Backend, args []string, kind string) (perdure.TreeID, error) {
	if len(args) > 0 {
		return b.FindTree(ctx, args[0])
	}
	page, err := b.Trees(ctx, perdure.TreeFilter{Kind: kind, Limit: 1})
	if err != nil {
		return "", err
	}
	switch {
	case len(page.Trees) > 0:
	case kind == "":
		return "", NotFound("`perdure run` creates one", "there are no trees")
	default:
		return "", NotFound("`perdure run` creates one; `perdure status` lists imported trees, which have to be named",
			"there is no tree of kind %s", kind)
	}
	e.Note("the newest tree: %s", page.Trees[0].ID)
	return page.Trees[0].ID, nil
}
