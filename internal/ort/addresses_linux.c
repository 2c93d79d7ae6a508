// Go's runtime and ONNX Runtime reserve addresses far beyond what they use. Where
// the shell allows too few (ulimit -v), Go ends in a dump of all its threads, before
// or after main. So this is looked at before Go begins.

#include <sys/resource.h>
#include <unistd.h>

// least is what scoring a tiny network takes on two cores, 1,740 MB, and some more.
static const rlim_t least = (rlim_t)2 << 30;

static const char message[] =
	"error: ulimit -v allows this process less than 2 GiB of addresses, which are not memory that is used\n"
	"hint: ulimit -v unlimited; --memory SIZE bounds the memory of networks\n";

__attribute__((constructor)) static void check_addresses(void) {
	struct rlimit l;
	if (getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY && l.rlim_cur < least) {
		ssize_t written = write(2, message, sizeof message - 1);
		(void)written;
		_exit(75);
	}
}
