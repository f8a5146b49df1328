package page

import (
	"crypto/sha256"
	_ "embed" // the stylesheet
	"encoding/base64"
)

// Style is the stylesheet of all that this package draws, and of the pages around it.
//
//go:embed style.css
var Style string

// StyleHash names Style in a Content-Security-Policy: "'sha256-...'".
func StyleHash() string {
	sum := sha256.Sum256([]byte(Style))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
