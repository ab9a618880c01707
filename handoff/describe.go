package handoff

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
		root, err := parseText(file, data, MaxDepth)
		if err != nil {
			continue
		}
		d := &Document{name: file, data: data, root: root}
		for _, owner := range d.named(root, id) {
			title = orElse(d.text(owner.get("title")), d.text(owner.get("name")))
			description = orElse(d.text(owner.get("description")), d.text(owner.get("story")))
			if title != "" || description != "" {
				return title, description
			}
		}
	}
	return "", ""
}
