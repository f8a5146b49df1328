package target

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
)

// A pack's name is the hash of its bytes, by which somebody who guesses these could prove that
// they are there. So in an encrypted directory it is encrypted itself, always to the same name:
// 16 bytes of an HMAC-SHA-256 of it, then the name by AES-256 in counter mode, which these 16 bytes
// begin (as in RFC 5297, with another function for its S2V). In hexadecimal digits, as before.
const (
	plainStem  = 64
	sealedStem = 2*aes.BlockSize + plainStem
)

// sealName is the name that the target has for a content; open is its inverse. Only the names of packs
// differ.
func (k *projectKey) sealName(name string) string {
	dir, stem, ext := packStem(name)
	raw, err := hex.DecodeString(stem)
	if dir == "" || len(stem) != plainStem || err != nil {
		return name
	}
	iv := k.nameMAC(raw)
	return path.Join(dir, hex.EncodeToString(append(iv, k.nameStream(iv, raw)...))) + ext
}

func (k *projectKey) openName(name string) string {
	dir, stem, ext := packStem(name)
	raw, err := hex.DecodeString(stem)
	if dir == "" || len(stem) != sealedStem || err != nil {
		return name
	}
	iv := raw[:aes.BlockSize]
	plain := k.nameStream(iv, raw[aes.BlockSize:])
	if !hmac.Equal(iv, k.nameMAC(plain)) {
		return name
	}
	return path.Join(dir, hex.EncodeToString(plain)) + ext
}

func (k *projectKey) nameMAC(raw []byte) []byte {
	mac := hmac.New(sha256.New, k.names[:32])
	mac.Write(raw)
	return mac.Sum(nil)[:aes.BlockSize]
}

func (k *projectKey) nameStream(iv, in []byte) []byte {
	block, err := aes.NewCipher(k.names[32:])
	if err != nil {
		panic(err) // only for keys of another length
	}
	out := make([]byte, len(in))
	cipher.NewCTR(block, iv).XORKeyStream(out, in)
	return out
}

// packStem cuts PROJECT/packs/STEM.EXT; dir is "" for any other name.
func packStem(name string) (dir, stem, ext string) {
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if path.Base(dir) != packsDir || strings.Count(dir, "/") != 1 {
		return "", "", ""
	}
	ext = path.Ext(base)
	return dir, strings.TrimSuffix(base, ext), ext
}
