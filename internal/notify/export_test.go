package notify

// DesktopOf is for tests.
var DesktopOf = desktopOf
