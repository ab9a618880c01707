package guard_test

// adopts: the system lets a guard adopt orphans.
const adopts = true
