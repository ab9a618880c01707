package watch

import (
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// outline is the part of a tree that was looked at, with what is unfolded. Rows
// that were never on the screen are not loaded; their places are known, because
// the positions of children have no gaps.
type outline struct {
	root *node
	byID map[perdure.TaskID]*node
}

type node struct {
	row    client.OutlineRow
	parent *node
	open   bool
	// kids are the children by position, nil where not loaded; unfolded the
	// positions of those that are open, in order.
	kids     []*node
	unfolded []int
}

// place is where a row stands, loaded or not. The root's parent is nil.
type place struct {
	parent *node
	pos    int
}

func newOutline() *outline { return &outline{byID: make(map[perdure.TaskID]*node)} }

// put adds a row, or brings a loaded one up to date.
func (o *outline) put(row client.OutlineRow) {
	n := o.byID[row.Task]
	if n == nil {
		n = &node{}
		if row.Parent == 0 {
			o.root = n
		} else {
			n.parent = o.byID[row.Parent]
			if n.parent == nil || row.Position < 0 {
				return // its parent was never shown
			}
			n.parent.reserve(int64(row.Position) + 1)
			n.parent.kids[row.Position] = n
		}
		o.byID[row.Task] = n
	}
	n.row = row
	if n.open {
		n.reserve(row.Children)
	}
}

// reserve makes places for children.
func (n *node) reserve(count int64) {
	if missing := int(count) - len(n.kids); missing > 0 {
		n.kids = append(n.kids, make([]*node, missing)...)
	}
}

func (n *node) unfold(open bool) {
	if n.open == open || open && n.row.Children == 0 {
		return
	}
	n.open = open
	if open {
		n.reserve(n.row.Children)
	}
	if n.parent == nil {
		return
	}
	i, found := slices.BinarySearch(n.parent.unfolded, n.row.Position)
	switch {
	case open && !found:
		n.parent.unfolded = slices.Insert(n.parent.unfolded, i, n.row.Position)
	case !open && found:
		n.parent.unfolded = slices.Delete(n.parent.unfolded, i, i+1)
	}
}

// size is how many rows a task takes with what is unfolded below it. It costs
// as much as tasks are unfolded.
func (n *node) size() int {
	if !n.open {
		return 1
	}
	total := 1 + len(n.kids)
	for _, pos := range n.unfolded {
		total += n.kids[pos].size() - 1
	}
	return total
}

func (o *outline) size() int {
	if o.root == nil {
		return 0
	}
	return o.root.size()
}

// at finds the place of a row by its number, and how deep it is.
func (o *outline) at(i int) (p place, level int) {
	if o.root == nil || i <= 0 {
		return place{}, 0
	}
	return o.root.at(i, 1)
}

// at finds the row i behind n's own.
func (n *node) at(i, level int) (place, int) {
	i-- // n itself
	pos := 0
	for _, open := range n.unfolded {
		if i < open-pos {
			break
		}
		i -= open - pos
		pos = open
		kid := n.kids[open]
		if i == 0 {
			return place{n, open}, level
		}
		size := kid.size()
		if i < size {
			return kid.at(i, level+1)
		}
		i -= size
		pos++
	}
	return place{n, pos + i}, level
}

// index is the number of the row of a place.
func (o *outline) index(p place) int {
	if p.parent == nil {
		return 0
	}
	i := 1 + p.pos
	for _, open := range p.parent.unfolded {
		if open >= p.pos {
			break
		}
		i += p.parent.kids[open].size() - 1
	}
	return o.index(p.parent.place()) + i
}

func (n *node) place() place {
	if n.parent == nil {
		return place{}
	}
	return place{n.parent, n.row.Position}
}

// node is the loaded task of a place, or nil.
func (o *outline) node(p place) *node {
	if p.parent == nil {
		return o.root
	}
	if p.pos < 0 || p.pos >= len(p.parent.kids) {
		return nil
	}
	return p.parent.kids[p.pos]
}
