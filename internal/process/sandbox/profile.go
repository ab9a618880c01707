package sandbox

import (
	"fmt"
	"slices"
	"strings"
)

// profile is what a program may do, for sandbox-exec of macOS. All else is refused. The paths have
// no symbolic links, except those in see.
type profile struct {
	// execute are the files that the program executes: itself, and what it replaces itself by when
	// it starts.
	execute []string
	// read are files and folders of programs and libraries, hide those that must not be read
	// although they are in read, and show those that are read although they are in hide.
	read, hide, show []string
	// write are folders.
	write []string
	// see are files and folders whose attributes only are read, to find the others.
	see []string
}

// systemPaths are what each program of macOS reads when it starts: libraries and their cache, which
// is at another place in each version, locales and time zones. /System has the volume with the
// files of the user, too.
func systemPaths() []string {
	return []string{"/usr/lib", "/usr/share", "/System/Library", "/Library/Apple/System/Library",
		"/System/Cryptexes/OS", "/System/Volumes/Preboot/Cryptexes/OS", "/private/preboot/Cryptexes/OS",
		"/private/var/db/dyld", "/private/var/db/timezone"}
}

// systemValues are the names of kernel values, and the beginnings of names, that libraries read.
// Those of processes are not among them: with them, the arguments and variables of other processes
// can be read.
func systemValues() (names, prefixes []string) {
	return []string{"kern.argmax", "kern.hv_vmm_present", "kern.iossupportversion", "kern.maxfilesperproc",
			"kern.ngroups", "kern.osproductversion", "kern.osrelease", "kern.ostype", "kern.osvariant_status",
			"kern.osversion", "kern.secure_kernel", "kern.sysv.semmni", "kern.usrstack64", "kern.version",
			"machdep.cpu.brand_string", "security.mac.lockdown_mode_state", "sysctl.proc_cputype", "vm.loadavg"},
		[]string{"hw."}
}

// text returns the profile in the language of sandbox-exec, in which the last rule that matches
// counts.
func (p *profile) text() (string, error) {
	var w profileWriter
	w.line("(version 1)", "(deny default)", "(deny process-info* nvram* iokit-get-properties)",
		"(allow process-info* (target self))", "(allow signal (target self))")
	w.rule("allow process-exec", w.filters("literal", p.execute))
	w.line(`(allow file-read-data (literal "/"))`) // the loader lists it
	readable := slices.Concat(w.filters("literal", p.execute), w.filters("subpath", systemPaths()),
		w.filters("subpath", p.read))
	w.rule("allow file-read* file-map-executable", readable)
	w.rule("deny file-read* file-map-executable", w.filters("subpath", p.hide))
	w.rule("allow file-read* file-map-executable", w.filters("subpath", p.show))
	w.rule("allow file-read-metadata", w.filters("literal", p.see))
	w.line(`(allow file-read* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))`,
		`(allow file-write-data (literal "/dev/null"))`)
	names, prefixes := systemValues()
	w.rule("allow sysctl-read", slices.Concat(w.filters("sysctl-name", names),
		w.filters("sysctl-name-prefix", prefixes)))
	w.rule("allow file-read* file-write*", w.filters("subpath", p.write))
	// A second name of a file that is only read would be in a folder that is written.
	w.line("(deny file-link file-write-setugid)", "(deny process-fork)", "(deny network*)", "(deny mach-lookup)")
	return w.String(), w.err
}

// profileWriter writes a profile. The first error stays.
type profileWriter struct {
	strings.Builder

	err error
}

func (w *profileWriter) line(lines ...string) {
	for _, l := range lines {
		w.WriteString(l + "\n")
	}
}

// rule writes a rule, unless it has no filters: then it would hold for everything.
func (w *profileWriter) rule(what string, filters []string) {
	if len(filters) > 0 {
		w.line("(" + what + "\n  " + strings.Join(filters, "\n  ") + ")")
	}
}

// filters returns a filter of a kind for each text.
func (w *profileWriter) filters(kind string, texts []string) (filters []string) {
	for _, t := range texts {
		quoted, err := quote(t)
		if err != nil && w.err == nil {
			w.err = err
		}
		filters = append(filters, "("+kind+" "+quoted+")")
	}
	return filters
}

// quote returns a text as a string of the language of profiles, which is a kind of Scheme: only the
// quotation mark and the backslash have a meaning in it. Control characters, which no usual path
// has, are refused, because versions of the language read them in different ways.
func quote(text string) (string, error) {
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f {
			return "", fmt.Errorf("the path %q has a control character", text)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`, nil
}
