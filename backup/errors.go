package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"decree/backup/target"
	"decree/disk"
	"decree/project"
	"decree/store"
	"decree/tree"
)

// What an error of reading says of what was to be read, from the narrowest to the widest:
//
//	wrongBytes                 a file is missing, or is not the one that is meant
//	isDamage                   that, or no file is there but something else
//	isLost                     wrongBytes, or a store lacks a content or has damaged it
//	isDamagedContent           isDamage or isLost, or a directory's object is damaged
//	unusable                   isDamage, or a manifest or zip that is malformed, or that no key here opens
//
// All other errors are of the line, the disk or the command: they say nothing of what the target has.

var (
	errSize = errors.New("not as long as it was")
	errHash = errors.New("not the content of that hash")
)

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// wrongBytes says whether an error is that a file is missing, or is not the one that is meant. Of a line that is cut, or a command that
// is ended, nothing is known but that the bytes did not come.
func wrongBytes(err error) bool {
	if errors.Is(err, target.ErrGone) || errors.Is(err, context.Canceled) {
		return false
	}
	return isMissing(err) || errors.Is(err, errSize) || errors.Is(err, errHash) || errors.Is(err, target.ErrDamaged) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// notAFile says whether an error is that a link, a directory or the like stands where a file belongs, or a file where a directory does.
func notAFile(err error) bool {
	return err != nil && (errors.Is(err, disk.ErrNotRegular) || disk.OtherKind(err))
}

// notAFileNext is what to do about that.
const notAFileNext = "put what belongs there in the place of what stands there; or, if that is lost, move it away, and the next command says what is missing"

// isDamage says whether an error of reading is that bytes are missing or are others.
func isDamage(err error) bool { return wrongBytes(err) || notAFile(err) }

// isLost says whether an error is that bytes are missing or not what they were.
func isLost(err error) bool { return wrongBytes(err) || store.IsLost(err) }

// isDamagedContent says whether an error is that what the target has is not what it should be.
func isDamagedContent(err error) bool {
	return isDamage(err) || store.IsLost(err) || errors.As(err, new(*tree.DamagedError))
}

// unusable says whether an error is that a copy of a manifest is not there, or of no use here.
func unusable(err error) bool {
	return isDamage(err) || errors.As(err, new(*formatError)) || target.AboutKey(err)
}

// refused is an error of kind project.Refused.
func refused(advice, format string, args ...any) error {
	return &project.Error{Kind: project.Refused, State: project.Unchanged, Msg: fmt.Sprintf(format, args...), Advice: advice}
}

// notFound is an error of kind project.NotFound.
func notFound(advice, format string, args ...any) error {
	return &project.Error{Kind: project.NotFound, Msg: fmt.Sprintf(format, args...), Advice: advice}
}

// faster is the refusal of who finds that somebody else has written in a project's directory just then.
func faster(t target.Target, name string) error {
	return refused("run the command again", "%s/%s: another machine, project or command was faster", t, name)
}

// keyRefused is an error of what opens backups: the same kind in every command, whatever it was that could not be read.
func keyRefused(err error) error {
	return &project.Error{Kind: project.Refused, Err: err, State: project.Unchanged}
}

// damaged is an error of kind project.Integrity, unless what is missing is the key.
func damaged(err error, format string, args ...any) error {
	if target.AboutKey(err) {
		return keyRefused(err)
	}
	return &project.Error{Kind: project.Integrity, Msg: fmt.Sprintf(format, args...), Err: err}
}

// damagedUnlessDisk is damaged where an error says that bytes are wrong or missing.
func damagedUnlessDisk(err error, format string, args ...any) error {
	if isLost(err) || target.AboutKey(err) {
		return damaged(err, format, args...)
	}
	return err
}

// readBack is the error of reading back what was just written into a target: damage where what came is not what was written. A
// line that was cut, a command that was ended and a full disk here say nothing of the target.
func readBack(t target.Target, err error) error {
	if isDamage(err) || target.AboutKey(err) {
		return damaged(err, "%s: what was written there is read back otherwise", t)
	}
	return err
}

// IsGone says whether an error is that the target is not there.
func IsGone(err error) bool { return errors.Is(err, target.ErrGone) }

// nameRefused says whether err can be that of a file system that does not take a name.
func nameRefused(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EILSEQ) || errors.Is(err, syscall.ENAMETOOLONG)
}

// Explain gives errors of targets a kind and a next step.
func Explain(err error) error {
	failed := func(advice string) error {
		return &project.Error{Kind: project.Failed, Err: err, State: project.Unchanged, Advice: advice}
	}
	var known *project.Error
	switch {
	case target.AboutKey(err) && errors.As(err, &known):
		own := *known // of what was under way then, and the kind is that of the key's error in all commands
		own.Kind = project.Refused
		return &own
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, target.ErrNoBucket):
		return failed("make the bucket at the server, or mend its name in backup.to: decree makes none")
	case errors.Is(err, target.ErrCredentials):
		return failed("mend AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or ~/.aws/credentials; a daemon and cron have an environment of their own")
	case errors.Is(err, target.ErrRegion):
		return failed("name the bucket's region in the URL of backup.to (&region=R), or in AWS_REGION")
	case errors.Is(err, target.ErrGone):
		return failed("mount the disk, or see that the machine can be reached; 'decree backup config' says where the target comes from")
	case target.AboutKey(err):
		return keyRefused(err)
	case errors.As(err, new(*formatError)):
		return failed("")
	}
	return err
}
