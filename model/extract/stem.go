package extract

import "strings"

// maxWord is the longest word, in bytes, that can match a query; longer runs
// of letters and digits (hashes, encoded data) are counted but never compared.
const maxWord = 64

// inflected cuts the endings of grammar (plural, past, -ing) from a word in
// lower case and returns the length of what is left. It may change the last
// byte in place ("ies" becomes "i", as does a final "y"), so that all forms of
// a word end alike.
func inflected(w []byte) int {
	n := cutPlural(w)
	switch {
	case n >= 4 && string(w[n-2:n]) == "ed" && w[n-3] != 'e' && vowel(w[:n-2]):
		n -= 2
	case n >= 5 && string(w[n-3:n]) == "ing" && vowel(w[:n-3]):
		n -= 3
	}
	return tail(w, n)
}

// cutPlural cuts the endings of the plural, of verbs after he and she too.
func cutPlural(w []byte) int {
	n := len(w)
	if n < 4 || w[n-1] != 's' {
		return n
	}
	switch w[n-2] {
	case 's', 'u', 'i':
		return n
	case 'e':
		if n > 4 && w[n-3] == 'i' {
			return n - 2
		}
		if n > 4 && (w[n-3] == 'x' || w[n-3] == 's' || w[n-3] == 'z' || w[n-3] == 'h') {
			return n - 2
		}
	}
	return n - 1
}

// tail evens out what is left at the end of a word after a cut: a silent e, a
// doubled consonant, y against i.
func tail(w []byte, n int) int {
	if n >= 3 && w[n-1] == 'e' {
		n--
	}
	if n >= 4 && w[n-1] == w[n-2] && w[n-1] > '9' && !isVowel(w[n-1]) {
		n--
	}
	if n >= 3 && w[n-1] == 'y' && !isVowel(w[n-2]) {
		w[n-1] = 'i'
	}
	return n
}

// derived cuts the endings that make one word from another (-er, -ion,
// -able, …) from what [inflected] left, and returns the length of the root.
// "allocate", "allocator" and "allocation" all come to "alloc".
func derived(w []byte) int {
	n := len(w)
	for range 3 {
		k := cutDerived(w[:n])
		if k == n {
			return n
		}
		n = tail(w, k)
	}
	return n
}

// cutDerived cuts one ending when a root of three letters and a vowel is left.
func cutDerived(w []byte) int {
	n := len(w)
	if n < 5 || w[n-1] < 'a' {
		return n
	}
	cut := derivedEnding(w)
	if cut == 0 || n-cut < 3 || !vowel(w[:n-cut]) {
		return n
	}
	return n - cut
}

// derivedEnding returns the length of the ending that makes w a derived word.
func derivedEnding(w []byte) int {
	n := len(w)
	switch string(w[n-2:]) {
	case "er", "or", "al", "iv", "ic", "at", "iz", "li":
		return 2
	case "on":
		if w[n-3] == 'i' && (w[n-4] == 't' || w[n-4] == 's') {
			return 3
		}
	case "nt":
		if n > 6 && string(w[n-4:]) == "ment" {
			return 4
		}
	case "nc", "bl":
		if w[n-3] == 'a' || w[n-3] == 'e' || w[n-3] == 'i' {
			return 3
		}
	case "es":
		if n > 6 && string(w[n-4:]) == "ines" {
			return 3
		}
	case "ti":
		if w[n-3] == 'i' {
			return 3
		}
	case "fi":
		return 1
	case "ul":
		if w[n-3] == 'f' {
			return 3
		}
	case "us":
		if w[n-3] == 'o' {
			return 3
		}
	case "st", "sm":
		if w[n-3] == 'i' {
			return 3
		}
	}
	return 0
}

func vowel(w []byte) bool {
	for i, c := range w {
		if isVowel(c) || c == 'y' && i > 0 {
			return true
		}
	}
	return false
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }
