package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Hash is the SHA-256 of a content: what sha256sum prints. The zero Hash stands for "none"
// and belongs to directories.
type Hash [sha256.Size]byte

// EmptySum is the hash of no bytes, which every empty file has.
var EmptySum = Sum(nil)

// Sum returns the hash of data.
func Sum(data []byte) Hash { return sha256.Sum256(data) }

// SumOf returns the hash of all that r gives.
func SumOf(r io.Reader) (h Hash, err error) {
	sum := sha256.New()
	_, err = io.Copy(sum, r)
	sum.Sum(h[:0])
	return h, err
}

// String returns the hash as 64 lower-case hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h is the zero Hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// ParseHash is the inverse of [Hash.String]. It accepts 64 lower-case hex digits and
// nothing else: one hash, one text.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*len(h) {
		return Hash{}, fmt.Errorf("hash %q: not 64 hex digits", Clip(s))
	}
	for i := range h {
		hi, lo := hexDigit(s[2*i]), hexDigit(s[2*i+1])
		if hi < 0 || lo < 0 {
			return Hash{}, fmt.Errorf("hash %q: not lower-case hex", s)
		}
		h[i] = byte(hi<<4 | lo)
	}
	return h, nil
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// MarshalText returns the 64 hex digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads what MarshalText writes; see [ParseHash].
func (h *Hash) UnmarshalText(text []byte) error {
	p, err := ParseHash(string(text))
	if err != nil {
		return err
	}
	*h = p
	return nil
}
