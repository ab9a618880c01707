package syntax

// Script is the name of the code outside functions.
const Script = "(file)"
