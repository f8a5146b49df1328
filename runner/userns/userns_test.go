package userns

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestReason: each setting that forbids, and what helps.
func TestReason(t *testing.T) {
	for _, c := range []struct {
		policy         Policy
		reason, advice string
	}{
		{Policy{AppArmor: true}, "AppArmor", "'decree doctor'"},
		{Policy{Off: true, AppArmor: true}, "kernel.unprivileged_userns_clone is 0", "sudo sysctl"},
		{Policy{Exhausted: true}, "user.max_user_namespaces is 0", "sudo sysctl"},
		{Policy{Filtered: true}, "filter of system calls", "--security-opt"},
	} {
		reason, advice := c.policy.Reason()
		assert.Contains(t, reason, c.reason)
		assert.Contains(t, advice, c.advice)
	}
	reason, advice := Policy{}.Reason()
	assert.Empty(t, reason+advice)
}

func TestProfile(t *testing.T) {
	assert.Contains(t, Profile(`/usr/bin/"decree"`), `profile decree "/usr/bin/\"decree\"" flags=(unconfined) {`)
	assert.True(t, strings.HasSuffix(Profile("/d"), "}\n"))
}
