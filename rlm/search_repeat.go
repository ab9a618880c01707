package rlm

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/rlm/internal/retrieve"
)

// repeatedNote is in the prompt behind a reply that had no new request.
const repeatedNote = "\n(Your last reply repeated requests whose results are above. Answer with what the text above " +
	"shows, or make other requests: if the next reply repeats them again, the search ends without an answer.)"

// repeats notes the requests of a reply, and reports whether each of them, or a reply without one, was
// in an earlier reply: its result is in the prompt.
func (h *hunt) repeats(text string, r *retrieve.Reply) bool {
	if h.made == nil {
		h.made = make(map[string]bool)
	}
	keys := make([]string, 0, len(r.Requests)+1)
	for _, req := range r.Requests {
		keys = append(keys, requestKey(req))
	}
	if len(keys) == 0 {
		keys = append(keys, "reply "+strings.TrimSpace(text))
	}
	known := true
	for _, key := range keys {
		known = known && h.made[key]
		h.made[key] = true
	}
	return known
}

// requestKey returns what equal requests have in common.
func requestKey(r retrieve.Request) string {
	key := strings.Join(strings.Fields(r.String()), " ")
	if r.Kind == retrieve.Search {
		key = strings.ToLower(key)
	}
	return key
}

// endRepeating returns what is known when the model repeats requests although the prompt said so: no
// answer, and the places that it was shown.
func (h *hunt) endRepeating(r *retrieve.Reply, reply int) (string, Data, error) {
	what := "replies that are no request and no answer"
	if len(r.Requests) > 0 {
		what = fmt.Sprintf("the request %q", r.Requests[0])
	}
	h.unanswered, h.data.Incomplete = true, true
	h.data.addNotes([]string{fmt.Sprintf("the search ended at reply %d, because model %q repeated %s, also after the "+
		"prompt said so; use another --model, or --planner split, which reads everything", reply, h.m.name, what)})
	return h.answer("(no answer: the model repeated "+what+" whose result it had)", reply)
}
