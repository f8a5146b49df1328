package target

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Clean is a target in the one spelling by which it is remembered, however its user has written it: a shell completes a directory with a
// '/' at its end.
func Clean(to string) string {
	scheme, rest, remote := strings.Cut(to, "://")
	if !remote && filepath.IsAbs(to) {
		return filepath.Clean(to)
	}
	if !remote || scheme != "s3" && scheme != "sftp" {
		return to
	}
	at, query, asks := strings.Cut(rest, "?")
	if short := strings.TrimRight(at, "/"); scheme == "s3" || strings.Contains(short, "/") { // else it is sftp's root
		at = short
	}
	if asks {
		at += "?" + query
	}
	return scheme + "://" + at
}

// Shown is a target as messages, configs that are shown and memories have it: as it was given, but without
// what may be secret and belongs into no URL. Of one that cannot be read it is the scheme alone.
func Shown(to string) string {
	scheme, _, remote := strings.Cut(to, "://")
	if !remote {
		return to
	}
	u, err := url.Parse(to)
	if err != nil || u.Host == "" {
		return scheme + "://..."
	}
	query, hidden := u.Query(), false
	if _, password := u.User.Password(); password || scheme == "s3" && u.User != nil {
		hidden = true
		if u.User = url.User(u.User.Username()); scheme == "s3" {
			u.User = nil
		}
	}
	for key := range query {
		if key != "endpoint" && key != "region" {
			hidden = true
			query.Del(key)
		}
	}
	if endpoint, err := url.Parse(query.Get("endpoint")); err != nil {
		hidden = true
		query.Del("endpoint")
	} else if endpoint.User != nil {
		hidden = true
		endpoint.User = nil
		query.Set("endpoint", endpoint.String())
	}
	if !hidden {
		return to
	}
	u.RawQuery = query.Encode()
	return u.String()
}
