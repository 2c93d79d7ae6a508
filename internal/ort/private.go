package ort

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// A sharedError reports that another user can change what runs.
type sharedError string

func (e sharedError) Error() string { return string(e) }

// private returns a [sharedError] if another user than root and this one owns the file, or can write to it. For a folder
// of another user it is a [cacheError]: Install cannot repair it.
func private(f *os.File) error {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return err
	}
	acl, _ := unix.Fgetxattr(int(f.Fd()), "system.posix_acl_access", nil) // its rights are in the group's bits
	me := uint32(os.Geteuid())
	why := shared(s.Uid, s.Gid, fs.FileMode(s.Mode), me, acl > 0)
	if why == "" {
		return nil
	}
	err := error(sharedError(f.Name() + " " + why))
	if s.Uid != 0 && s.Uid != me && s.Mode&unix.S_IFMT == unix.S_IFDIR {
		return cacheError{err}
	}
	return err
}

// shared returns the reason why another user than root and me can write to a file, or "". Many systems give each user a
// group of the same name, and let it write to new files. That group counts as the user, and root's group as root.
func shared(owner, group uint32, mode fs.FileMode, me uint32, acl bool) string {
	switch {
	case owner != 0 && me == 0:
		return fmt.Sprintf("belongs to user %d, want root", owner)
	case owner != 0 && owner != me:
		return fmt.Sprintf("belongs to user %d, want user %d or root", owner, me)
	case mode&0o002 != 0:
		return "can be written by every user"
	case mode&0o020 != 0 && (acl || group != 0 && !ownGroup(group, me)):
		return fmt.Sprintf("can be written by group %d", group)
	}
	return ""
}

// ownGroup reports whether a group has the name of the user.
func ownGroup(group, me uint32) bool {
	u, err1 := user.LookupId(strconv.FormatUint(uint64(me), 10))
	g, err2 := user.LookupGroupId(strconv.FormatUint(uint64(group), 10))
	return err1 == nil && err2 == nil && u.Username == g.Name
}

// restrict takes the right to write to a folder from all but its owner, if this user may do that.
func restrict(dir string) {
	if info, err := os.Stat(dir); err == nil && info.Mode()&0o022 != 0 {
		os.Chmod(dir, info.Mode()&^0o022) // if it fails, verify says so
	}
}
