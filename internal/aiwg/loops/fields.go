package loops

// kept is the place of fields that stay in the document, which `perdure show --json` prints
// and exports write again.
const kept = "kept in the document"

// PlaceOf returns the place of a member of a document in the store. Documents of loops are
// kept as a whole; some of their members also become columns.
func PlaceOf(document, member string) string {
	place := map[string]string{
		"loop-state loop_id":                     "name of the tree; in exports it begins with ralph-",
		"loop-state version":                     "checked: 2.x.y",
		"loop-state status":                      "state of the root: completed, failed, aborted (cancelled), else queued",
		"loop-state iteration":                   "number of iterations",
		"loop-state task":                        "prompt of the root",
		"loop-state started_at":                  "creation time of the root",
		"loop-state completed_at":                "completion time of the root",
		"loop-state error_context":               "error of a failed root",
		"loop-state iteration_history":           "a task for each iteration",
		"iteration-analytics iterations":         "usage and time of the iterations' tasks",
		"iteration-analytics unrated_iterations": "as iterations",
		"loop-checkpoint iteration":              "`data` of the iteration's task",
	}[document+" "+member]
	if place == "" {
		return kept
	}
	return place + "; " + kept
}
