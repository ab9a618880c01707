package syntax

import "slices"

// readOffers notes the names that a file re-exports.
func (u *unit) readOffers(m *Model) {
	if u.inTests {
		return
	}
	switch u.lang.Name {
	case "javascript", "typescript":
		u.handedOn(m)
	case "rust":
		u.usedPublicly(m)
	case "python":
		u.offersOfPackage(m)
	}
	slices.Sort(m.Offers)
	m.Offers = slices.Compact(m.Offers)
}

// offer adds the last name of each comma-separated part: b of a as b.
func (u *unit) offer(m *Model, from, to int) {
	for j := from; j < min(to, len(u.tok)); j++ {
		switch u.at(j) {
		case "(", "[", "{":
			j = u.closer(j) - 1
			continue
		}
		named := u.at(j-1) == "as" || u.at(j-1) == "type" || j == from || u.at(j-1) == "," || u.at(j-1) == "::"
		if u.isWord(j) && named && (u.at(j+1) == "," || j+1 == to) {
			m.Offers = append(m.Offers, u.at(j))
		}
	}
}
