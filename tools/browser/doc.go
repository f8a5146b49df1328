// Package browser tests decree's pages in a real browser: Debian's chromium, driven over its
// debugging protocol. It is a module of its own, so that the program has none of what that needs.
//
// 'make browser' runs it with the built program. Each story is told four times: by mouse and by the
// keyboard alone, with and without script. On every page that a story comes to, axe-core looks
// for what keeps people out, in light and dark, and no page may make the browser report a
// violation of the Content-Security-Policy or an error.
package browser
