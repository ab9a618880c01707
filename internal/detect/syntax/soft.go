package syntax

// noteSoft notes the condition [from, to) of a block that cannot throw.
func (u *unit) noteSoft(f *Function, from, to, bodyFrom, bodyTo int) {
	for j := bodyFrom; j < bodyTo; j++ {
		s := u.at(j)
		if !u.isWord(j) {
			continue
		}
		if u.lang.throws[s] || u.at(j+1) == "(" && !loggingCalls()[plain(s)] || u.lang.shape == ends &&
			u.at(j-1) == "." && !loggingCalls()[plain(s)] && u.at(j+1) != "." {
			return
		}
	}
	f.Soft = append(f.Soft, u.condition(from, to))
}
