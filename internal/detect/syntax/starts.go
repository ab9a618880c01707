package syntax

import (
	"strings"
)

// addedRows adds the seed values of a Go fuzz test: f.Add(...).
func (u *unit) addedRows(t *Test, d *decl) {
	if u.lang.Name != "go" || !strings.HasPrefix(d.name, "Fuzz") {
		return
	}
	for j := d.body; j < d.end; j++ {
		if u.at(j) == "Add" && u.at(j-1) == "." && u.at(j-2) == "f" && u.at(j+1) == "(" {
			t.Cases = append(t.Cases, u.row(j+2, max(u.closer(j+1)-1, j+3)))
		}
	}
}
