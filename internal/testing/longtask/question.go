package longtask

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Kind is a kind of question.
type Kind string

// The kinds of questions.
const (
	Count   Kind = "count"
	Most    Kind = "most"
	Least   Kind = "least"
	Compare Kind = "compare"
	Pairs   Kind = "pairs"
)

// Kinds returns all of them.
func Kinds() []Kind { return []Kind{Count, Most, Least, Compare, Pairs} }

// Question is a question about a context.
type Question struct {
	Kind Kind
	// Label is what is counted; Other is what it is compared with.
	Label, Other Label
	// User is the number of the only user that counts, or -1. From and To are the first and
	// the last day that count.
	User, From, To int
}

// Questions returns a question of each kind with each of the filters: none, a user, dates, both.
func Questions(seed uint64) []Question {
	r := rand.New(rand.NewPCG(seed, 2))
	var list []Question
	for _, kind := range Kinds() {
		for filter := range 4 {
			q := Question{Kind: kind, Label: Label(r.IntN(Labels)), User: -1, To: Days - 1}
			q.Other = (q.Label + 1) % Labels
			if filter&1 != 0 {
				q.User = r.IntN(Users)
			}
			if filter&2 != 0 {
				q.From = r.IntN(Days / 2)
				q.To = q.From + r.IntN(Days/2)
			}
			list = append(list, q)
		}
	}
	return list
}

// String returns the question as text.
func (q Question) String() string {
	what := map[Kind]string{
		Count:   fmt.Sprintf("How many lines ask for a %s?", q.Label),
		Most:    "Which label is most frequent? Of several, name the first by the alphabet.",
		Least:   "Which label is least frequent? Of several, name the first by the alphabet.",
		Compare: fmt.Sprintf("Are there more, fewer or equally many (equal) lines of %s than of %s?", q.Label, q.Other),
		Pairs:   fmt.Sprintf("Which pairs of users (a-b, sorted, with commas) both ask for a %s? Or: none.", q.Label),
	}[q.Kind]
	who := "all users"
	if q.User >= 0 {
		who = User(q.User)
	}
	return fmt.Sprintf("%s Count lines of %s from %s to %s.", what, who, Date(q.From), Date(q.To))
}

// users returns the range of users that count.
func (q Question) users() (from, to int) {
	if q.User >= 0 {
		return q.User, q.User + 1
	}
	return 0, Users
}

// Answer returns the exact answer, and how many lines pass the filters.
func (t *Truth) Answer(q Question) (answer string, lines int64) {
	var sums [Labels]int64
	var having []string
	from, to := q.users()
	for user := from; user < to; user++ {
		before := sums[q.Label]
		for day := q.From; day <= q.To; day++ {
			for label, n := range t.Counts[user][day] {
				sums[label] += n
				lines += n
			}
		}
		if sums[q.Label] > before {
			having = append(having, User(user))
		}
	}
	switch q.Kind {
	case Count:
		return strconv.FormatInt(sums[q.Label], 10), lines
	case Most:
		return Label(slices.Index(sums[:], slices.Max(sums[:]))).String(), lines
	case Least:
		return Label(slices.Index(sums[:], slices.Min(sums[:]))).String(), lines
	case Compare:
		return compare(sums[q.Label], sums[q.Other]), lines
	default:
		return pairs(having), lines
	}
}

func compare(a, b int64) string {
	switch {
	case a > b:
		return "more"
	case a < b:
		return "fewer"
	}
	return "equal"
}

func pairs(names []string) string {
	var list []string
	for i, a := range names {
		for _, b := range names[i+1:] {
			list = append(list, a+"-"+b)
		}
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ",")
}
