package handoff

import "github.com/perdure/perdure/internal/text/jsontree"

// Describe looks for what a task is in the first of the files that tells of it:
// the object with the id of the story (or of the PRD between stories, or of the
// ad-hoc item), and in it a title and a description. Files that cannot be read
// tell nothing. For the files see [ContractFiles].
func Describe(t Task, files ...string) (title, description string) {
	if t.Place != PRD {
		return "", t.Description
	}
	id := orElse(t.Story, t.PRD)
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
			title = orElse(text(owner.Get("title")), text(owner.Get("name")))
			description = orElse(text(owner.Get("description")), text(owner.Get("story")))
			if title != "" || description != "" {
				return title, description
			}
		}
	}
	return "", ""
}
