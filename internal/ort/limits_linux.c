// Go's runtime and ONNX Runtime reserve addresses far beyond what they use. Where
// the shell allows too few (ulimit -v), Go ends in a dump of all its threads, before
// or after main. The same holds for memory that is written to (ulimit -d): each thread
// counts with its whole stack. Go also ends so where it cannot open its two files for
// waiting (ulimit -n). So these limits are checked before Go begins.

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

// least is what scoring a tiny network takes on two cores, 1,740 MB, and some more.
static const rlim_t least = (rlim_t)2 << 30;

static const char message[] =
	"error: ulimit -v allows this process less than 2 GiB of addresses, which are not memory that is used\n"
	"hint: ulimit -v unlimited; --memory SIZE bounds the memory of networks\n";

// leastData is what the threads and the heap of a small command take, 140 MB, and some more.
static const rlim_t leastData = (rlim_t)256 << 20;

static const char dataMessage[] =
	"error: ulimit -d allows this process less than 256 MiB of data, and its threads alone need more than half of that\n"
	"hint: ulimit -d unlimited; --memory SIZE bounds the memory of networks\n";

// leastFiles is what scoring two pictures opens at once, 12, and some more. A command that needs more says so when it
// comes to that.
enum { leastFiles = 32 };

static const char filesMessage[] =
	"error: too many open files: this process may open fewer than 32 (ulimit -n)\n"
	"hint: ulimit -n 4096 lets this shell's programs open more files at once\n";

static void refuse(const char *text, size_t length) {
	ssize_t written = write(2, text, length);
	(void)written;
	_exit(75);
}

static void check(int resource, rlim_t want, const char *text, size_t length) {
	struct rlimit l;
	if (getrlimit(resource, &l) == 0 && l.rlim_cur != RLIM_INFINITY && l.rlim_cur < want)
		refuse(text, length);
}

// check_files opens files to see how many may be opened: the parent may have left some open.
static void check_files(void) {
	int open_files[leastFiles], n = 0;
	while (n < leastFiles && (open_files[n] = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0)
		n++;
	int few = n < leastFiles && (errno == EMFILE || errno == ENFILE);
	while (n > 0)
		close(open_files[--n]);
	if (few)
		refuse(filesMessage, sizeof filesMessage - 1);
}

__attribute__((constructor)) static void check_limits(void) {
	check(RLIMIT_AS, least, message, sizeof message - 1);
	check(RLIMIT_DATA, leastData, dataMessage, sizeof dataMessage - 1);
	check_files();
}
