package handoff

import (
	"cmp"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Describe returns the title and the description of a task from the first of the files
// that has them: in the object with the id of the story (or of the PRD between stories,
// or of the ad-hoc item). Files that cannot be read are skipped. For the files see
// [ContractFiles].
func Describe(t Task, files ...string) (title, description string) {
	if t.Place != PRD {
		return "", t.Description
	}
	id := cmp.Or(t.Story, t.PRD)
	if id == "" {
		return "", ""
	}
	for _, file := range files {
		data, _, err := readFile(file)
		if err != nil {
			continue
		}
		root, err := parseText(file, data, jsontree.Options{})
		if err != nil {
			continue
		}
		for _, owner := range named(root, id) {
			title = cmp.Or(text(owner.Get("title")), text(owner.Get("name")))
			description = cmp.Or(text(owner.Get("description")), text(owner.Get("story")))
			if title != "" || description != "" {
				return title, description
			}
		}
	}
	return "", ""
}
