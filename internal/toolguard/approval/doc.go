// Package approval keeps the calls of tools that wait for a person's approval, outside of
// every workspace. A hook records such a call and denies it; the person allows it once; the
// hook lets the same call through and forgets it.
package approval
