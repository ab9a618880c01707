#!/bin/sh
# Runs the program of this name that follows in PATH, and keeps the results of its tests.
tool=${0##*/}
here=${0%/*}
real=
kept=$IFS
IFS=:
for dir in $PATH; do
	if [ "$dir" != "$here" ] && [ -f "$dir/$tool" ] && [ -x "$dir/$tool" ]; then
		real=$dir/$tool
		break
	fi
done
IFS=$kept
if [ -z "$real" ]; then
	echo "$tool: not found" >&2
	exit 127
fi
if [ -n "$PERDURE_IN_RUNNER" ] || [ -z "$PERDURE_RESULTS" ]; then
	exec "$real" "$@"
fi

# begin makes the folder of a run, and sets out to the file of its results.
begin() {
	place=$(pwd -P)
	place=$(printf %s "${place#"$PERDURE_ROOT"}" | tr -c 'A-Za-z0-9._-' + | tail -c 150)
	n=101
	while ! mkdir "$PERDURE_RESULTS/$1@$place@$n" 2>/dev/null; do
		n=$((n + 1))
		[ $n -lt 999 ] || return 1
	done
	out=$PERDURE_RESULTS/$1@$place@$n/result
	PERDURE_IN_RUNNER=1
	export PERDURE_IN_RUNNER
}

# has reports whether one of the other arguments is the first one, or begins with it and "=".
has() {
	wanted=$1
	shift
	for arg; do
		case $arg in "$wanted" | "$wanted"=*) return 0 ;; esac
	done
	return 1
}

# printed runs the program, keeps what it prints, and prints it.
printed() {
	"$real" "$@" >"$out.part" 2>&1
	status=$?
	mv "$out.part" "$out"
	cat "$out"
	exit $status
}

with_pytest() {
	for flag in --collect-only --co --fixtures --version --help -h --junitxml --junit-xml --; do
		if has $flag "$@"; then exec "$real" "$@"; fi
	done
	begin pytest || exec "$real" "$@"
	PYTEST_ADDOPTS=$PERDURE_ADDOPTS
	export PYTEST_ADDOPTS
	"$real" "$@" "--junitxml=$out" -o junit_family=xunit1
	exit
}

case $tool in
go)
	[ "$1" = test ] || exec "$real" "$@"
	for flag in -c --c -list --list -n --n -json --json -args --args; do
		if has $flag "$@"; then exec "$real" "$@"; fi
	done
	begin go || exec "$real" "$@"
	verbose=0
	if has -v "$@" || has --v "$@" || has -test.v "$@"; then verbose=1; fi
	shift
	"$real" test -json "$@" >"$out.part"
	status=$?
	mv "$out.part" "$out"
	awk -v verbose=$verbose -f "$PERDURE_PROBES/gotext.awk" "$out"
	exit $status
	;;
cargo)
	[ "$1" = test ] || [ "$1" = t ] || exec "$real" "$@"
	for flag in --no-run -q --quiet --list --format; do
		if has $flag "$@"; then exec "$real" "$@"; fi
	done
	begin cargo || exec "$real" "$@"
	CARGO_TERM_COLOR=never
	export CARGO_TERM_COLOR
	printed "$@"
	;;
bats)
	begin bats || exec "$real" "$@"
	printed "$@"
	;;
pytest | py.test) with_pytest "$@" ;;
python*)
	PYTHONPATH=$PERDURE_PROBES/python${PYTHONPATH:+:$PYTHONPATH}
	export PYTHONPATH
	case "$1 $2" in "-m pytest") with_pytest "$@" ;; esac
	exec "$real" "$@"
	;;
node)
	exec "$real" --require "$PERDURE_PROBES/preload.cjs" "$@"
	;;
bun | deno)
	[ "$1" = test ] || exec "$real" "$@"
	for flag in --reporter --reporter-outfile --watch --junit-path --no-run; do
		if has $flag "$@"; then exec "$real" "$@"; fi
	done
	begin "$tool" || exec "$real" "$@"
	shift
	if [ "$tool" = bun ]; then
		"$real" test --reporter=junit "--reporter-outfile=$out" "$@"
	else
		"$real" test "--junit-path=$out" "$@"
	fi
	exit
	;;
phpunit | pest)
	if has --log-junit "$@" || has --version "$@" || has --list-tests "$@"; then exec "$real" "$@"; fi
	begin phpunit || exec "$real" "$@"
	"$real" --log-junit "$out" "$@"
	exit
	;;
php)
	case ${1##*/} in
	phpunit | phpunit.phar | pest)
		if has --log-junit "$@"; then exec "$real" "$@"; fi
		begin phpunit || exec "$real" "$@"
		script=$1
		shift
		"$real" "$script" --log-junit "$out" "$@"
		exit
		;;
	esac
	exec "$real" "$@"
	;;
rspec)
	case $SPEC_OPTS in
	*"$PERDURE_PROBES"*) ;;
	*)
		SPEC_OPTS="--require $PERDURE_PROBES/rspec.rb $SPEC_OPTS"
		export SPEC_OPTS
		;;
	esac
	exec "$real" "$@"
	;;
esac
exec "$real" "$@"
