package detect

// protected reports a change to a file that configures checks.
func (r *run) protected(p *pair) {
	if p.change.Protected == "" {
		return
	}
	if p.change.Old.Path == p.change.New.Path && string(p.change.Old.Content) == string(p.change.New.Content) &&
		p.change.Old.Kind == p.change.New.Kind {
		return
	}
	r.add(Finding{File: p.path, Subject: p.path, Message: "file that configures checks changed: " + p.change.Protected,
		Evidence: p.change.Protected}, protectedFile)
}
