# Prints the output of go test -json as go test prints it.
function field(name,    at, text) {
	at = index($0, "\"" name "\":\"")
	if (at == 0) return ""
	text = substr($0, at + length(name) + 4)
	if (match(text, /^([^"\\]|\\.)*/)) text = substr(text, 1, RLENGTH)
	return text
}
function plain(text) {
	gsub(/\\u003c/, "<", text); gsub(/\\u003e/, ">", text); gsub(/\\u0026/, "\\&", text); gsub(/\\u001b/, "\033", text)
	gsub(/\\t/, "\t", text); gsub(/\\r/, "", text); gsub(/\\"/, "\"", text); gsub(/\\n/, "\n", text)
	gsub(/\\\\/, "\\", text)
	return text
}
!/^\{/ { print; next }
{
	action = field("Action"); test = field("Test"); key = field("Package") SUBSEP test
	if (action == "output" || action == "build-output") {
		text = plain(field("Output"))
		if (verbose || action == "build-output" || (test == "" && text != "PASS\n")) printf "%s", text
		else if (test != "" && text !~ /^=== /) held[key] = held[key] text
	} else if (action == "fail" && test != "" && !verbose) printf "%s", held[key]
	if (action == "pass" || action == "fail" || action == "skip") delete held[key]
}
