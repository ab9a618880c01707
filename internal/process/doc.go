// Package process is the folder of the packages about operating system processes.
//
// Package guard runs child processes that end when the program ends, also if it is
// killed; with package sandbox they cannot write outside of given folders and have no
// network. Package environ selects the environment variables that agents and checks get.
// Package caller identifies the process that makes a request. Package git runs the git
// program without the programs that settings of a repository name. Package failpoint marks
// the places in the code where a crash test kills the program; in a released program they do
// nothing.
package process
