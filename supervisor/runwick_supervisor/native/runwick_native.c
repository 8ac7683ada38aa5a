/* The compiled part of an executor: what cannot be done while Python code holds the interpreter.

     fence        a thread keeps the kernel's timer armed at the executor's deadline; when it passes, the kernel kills the
                  process, whatever runs in it, and before another instruction of it runs after a freeze
     births       forks a process that is somebody else's child from the start
     allocations  counts what Python's allocators hand out, in memory that the parent reads
     usage        reads what the process has used before and after an attempt, in one call each

   It uses no Python headers, so one build serves every version of Python. Executors use it after their fork; of the
   process that forks them it starts nothing, and does the fork itself. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_builtin) && defined(__has_include)
#if __has_builtin(__builtin_thread_pointer) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAS_RSEQ 1
#endif
#endif

#define ABI 4
#define NS_PER_S 1000000000ULL
#define SLOT_BYTES 64
#define FENCE_STACK_BYTES (64 * 1024)
#define NEAREST_POLL_NS 1000000ULL
#define SMALL_BYTES 256 /* what Python's own allocator keeps for itself, whatever its debugging adds */
#define US_PER_S 1000000LL

int rw_abi(void) { return ABI; }

/* The fence ------------------------------------------------------------------------------------------------------- */

typedef int (*Later)(int (*)(void *), void *);

static struct {
    Later later;
    const volatile uint64_t *deadline_ns; /* on CLOCK_BOOTTIME; 0: none */
    uint64_t poll_ns;
    uint64_t armed_ns;
    timer_t timer;
    pid_t owner; /* forks of it have no fence */
    pid_t thread_id;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    int running;
    int ending;
} fence;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    return time;
}

static int make_timer(timer_t *timer)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    return timer_create(CLOCK_BOOTTIME, &event, timer) == 0 ? 0 : errno;
}

static void arm(uint64_t deadline_ns)
{
    struct itimerspec at;
    memset(&at, 0, sizeof at); /* zeros disarm it */
    at.it_value = timespec_of(deadline_ns);
    if (timer_settime(fence.timer, TIMER_ABSTIME, &at, NULL) == 0)
        fence.armed_ns = deadline_ns;
}

/* Keep the timer at the deadline. The nearer that comes, the more often it is read: it may have been moved on. */
static void *keep(void *unused)
{
    (void)unused;
    fence.thread_id = (pid_t)syscall(SYS_gettid);
    pthread_mutex_lock(&fence.mutex);
    while (!fence.ending) {
        uint64_t deadline_ns = *fence.deadline_ns;
        if (deadline_ns != fence.armed_ns)
            arm(deadline_ns);
        uint64_t pause_ns = fence.poll_ns, now = now_ns(CLOCK_BOOTTIME);
        if (deadline_ns) {
            uint64_t half_ns = deadline_ns > now ? (deadline_ns - now) / 2 : 0;
            if (half_ns < pause_ns)
                pause_ns = half_ns < NEAREST_POLL_NS ? NEAREST_POLL_NS : half_ns;
        }
        struct timespec until = timespec_of(now_ns(CLOCK_MONOTONIC) + pause_ns);
        pthread_cond_timedwait(&fence.wake, &fence.mutex, &until);
    }
    pthread_mutex_unlock(&fence.mutex);
    return NULL;
}

/* Whether this system can do it; nothing is left behind. */
int rw_fence_check(void)
{
    timer_t timer;
    int refused = make_timer(&timer);
    if (!refused)
        timer_delete(timer);
    return refused;
}

static int prepare(int descriptor, int slot, uint64_t poll_ns)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE), offset = (size_t)slot * SLOT_BYTES;
    size_t within = offset % page_bytes;
    void *page = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED, descriptor, (off_t)(offset - within));
    if (page == MAP_FAILED)
        return errno;
    int refused = make_timer(&fence.timer);
    if (refused) {
        munmap(page, page_bytes);
        return refused;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&fence.wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&fence.mutex, NULL);
    fence.deadline_ns = (const volatile uint64_t *)((char *)page + within);
    fence.poll_ns = poll_ns;
    fence.armed_ns = 0;
    fence.owner = getpid();
    return 0;
}

static int launch(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, FENCE_STACK_BYTES);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it: signals are the main thread's */
    fence.ending = 0;
    int refused = pthread_create(&fence.thread, &attributes, keep, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    fence.running = !refused;
    return refused;
}

/* Begin, once. Answers 0 or an errno. `later` is Py_AddPendingCall. */
int rw_fence_start(int descriptor, int slot, uint64_t poll_ns, Later later)
{
    fence.later = later;
    int refused = prepare(descriptor, slot, poll_ns);
    return refused ? refused : launch();
}

/* Arm the timer now if another moment was said since the thread last looked. Called before something begins, so that no
   freeze can come between the two. */
void rw_fence_look(void)
{
    if (!fence.running || *fence.deadline_ns == fence.armed_ns)
        return;
    pthread_mutex_lock(&fence.mutex);
    arm(*fence.deadline_ns);
    pthread_mutex_unlock(&fence.mutex);
}

/* End the thread, for the moment of a fork; returns when the kernel does not count it any more. The timer is disarmed:
   nobody would move it on. Call it holding the interpreter's lock: two threads must not join the same one. */
void rw_fence_stop(void)
{
    if (!fence.running || fence.owner != getpid())
        return;
    pthread_mutex_lock(&fence.mutex);
    fence.ending = 1;
    pthread_cond_signal(&fence.wake);
    pthread_mutex_unlock(&fence.mutex);
    pthread_join(fence.thread, NULL);
    while (syscall(SYS_tgkill, fence.owner, fence.thread_id, 0) == 0)
        sched_yield();
    fence.running = 0;
    arm(0);
}

static int resume(void *unused)
{
    (void)unused;
    if (!fence.running && fence.owner == getpid())
        launch(); /* where there is no room for a thread, there is no timer either */
    return 0;
}

/* Go on when the fork is over: an interpreter may count this process's threads after it has called this, but makes no
   pending call before that. Those are the main thread's, which may wait for as long as it likes while another one forks;
   then there are threads to be counted anyway. In a fork of the owner nothing goes on. */
void rw_fence_resume_soon(void)
{
    int is_main = (pid_t)syscall(SYS_gettid) == getpid();
    if (!is_main || fence.later(resume, NULL) != 0)
        resume(NULL);
}

/* Births ---------------------------------------------------------------------------------------------------------- */

#ifdef HAS_RSEQ

/* The kernel forgets the area in which it tells a thread on which core it runs when memory is borrowed, and libc does not
   name it again at the fork that follows. Where the kernel refuses now, libc is told to ask each time. */
static void register_core_area(void)
{
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    if (offset == NULL || size == NULL || *size == 0)
        return; /* it was not in use */
    struct rseq *area = (void *)((char *)__builtin_thread_pointer() + *offset);
    if (syscall(SYS_rseq, area, *size < 32 ? 32 : *size, 0, RSEQ_SIG) != 0)
        area->cpu_id = RSEQ_CPU_ID_REGISTRATION_FAILED;
}

/* Fork a process whose own parent, the middle, has ended when this returns: whoever adopts orphans is its parent then.
   The middle borrows this process's memory for the moment that it lives, so that memory is copied once and not twice.
   The three functions are the interpreter's own around a fork; call it holding the interpreter's lock.

   Answers the new process's pid here, 0 in it, or the negative of an errno; `middle` is the pid of its first parent. */
int rw_fork_away(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), int *middle)
{
    volatile int answer = -EAGAIN; /* should the middle be killed before it can say anything */
    before();
    pid_t first = vfork();
    if (first == 0) {
        *middle = getpid();
        pid_t born = fork();
        if (born == 0) {
            register_core_area();
            in_child();
            return 0;
        }
        answer = born > 0 ? born : -errno;
        _exit(0);
    }
    if (first < 0)
        answer = -errno;
    else
        while (waitpid(first, NULL, 0) < 0 && errno == EINTR)
            ;
    in_parent();
    return answer;
}

#endif

/* Allocations ------------------------------------------------------------------------------------------------------ */

typedef struct { /* PyMemAllocatorEx */
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
} Allocator;

enum { RAW, MEM, OBJ, DOMAINS };
enum { BYTES, BLOCKS, RAW_BYTES, RAW_BLOCKS, COUNTERS };

#ifdef __GLIBC__
#define NEAR __attribute__((tls_model("initial-exec")))
#else
#define NEAR
#endif

static Allocator inner[DOMAINS];
static uint64_t nobodys[COUNTERS];
static uint64_t *counters = nobodys;
static __thread NEAR int depth;
/* Above 0 within a call of the other two domains, which may pass it on to the raw one: that is counted once. */

static void count(uint64_t bytes) /* under the interpreter's lock */
{
    counters[BYTES] += bytes;
    counters[BLOCKS] += 1;
}

static void count_raw(uint64_t bytes) /* in any thread */
{
    if (depth)
        return;
    __atomic_fetch_add(&counters[RAW_BYTES], bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counters[RAW_BLOCKS], 1, __ATOMIC_RELAXED);
}

/* One function for each domain, so that none has to look its inner one up; and freeing stays the inner one's own. A
   small block never comes from the raw domain, so most calls are only counted and passed on. */
#define COUNTED(name, domain)                                                                                          \
    static void *name##_malloc(void *ctx, size_t bytes)                                                                \
    {                                                                                                                  \
        if (bytes <= SMALL_BYTES) {                                                                                    \
            count(bytes);                                                                                              \
            return inner[domain].malloc(ctx, bytes);                                                                   \
        }                                                                                                              \
        depth++;                                                                                                       \
        void *block = inner[domain].malloc(ctx, bytes);                                                                \
        depth--;                                                                                                       \
        if (block)                                                                                                     \
            count(bytes);                                                                                              \
        return block;                                                                                                  \
    }                                                                                                                  \
    static void *name##_calloc(void *ctx, size_t number, size_t bytes)                                                 \
    {                                                                                                                  \
        depth++;                                                                                                       \
        void *block = inner[domain].calloc(ctx, number, bytes);                                                        \
        depth--;                                                                                                       \
        if (block)                                                                                                     \
            count(number * bytes);                                                                                     \
        return block;                                                                                                  \
    }                                                                                                                  \
    static void *name##_realloc(void *ctx, void *block, size_t bytes)                                                  \
    {                                                                                                                  \
        depth++;                                                                                                       \
        block = inner[domain].realloc(ctx, block, bytes);                                                              \
        depth--;                                                                                                       \
        if (block)                                                                                                     \
            count(bytes);                                                                                              \
        return block;                                                                                                  \
    }

COUNTED(mem, MEM)
COUNTED(obj, OBJ)

static void *raw_malloc(void *ctx, size_t bytes)
{
    void *block = inner[RAW].malloc(ctx, bytes);
    if (block)
        count_raw(bytes);
    return block;
}

static void *raw_calloc(void *ctx, size_t number, size_t bytes)
{
    void *block = inner[RAW].calloc(ctx, number, bytes);
    if (block)
        count_raw(number * bytes);
    return block;
}

static void *raw_realloc(void *ctx, void *block, size_t bytes)
{
    block = inner[RAW].realloc(ctx, block, bytes);
    if (block)
        count_raw(bytes);
    return block;
}

static void count_for_nobody(void) { counters = nobodys; }

/* Count from now on, into four words: bytes, blocks, and both again for the raw domain. Call it once, holding the
   interpreter's lock. What a fork of this process allocates is not counted. Answers 0 or an errno. */
int rw_alloc_install(void (*get)(int, Allocator *), void (*set)(int, Allocator *), uint64_t *words)
{
    if (counters != nobodys)
        return EALREADY;
    int refused = pthread_atfork(NULL, NULL, count_for_nobody);
    if (refused)
        return refused;
    counters = words;
    for (int domain = 0; domain < DOMAINS; domain++)
        get(domain, &inner[domain]);
    Allocator raw = {inner[RAW].ctx, raw_malloc, raw_calloc, raw_realloc, inner[RAW].free};
    Allocator mem = {inner[MEM].ctx, mem_malloc, mem_calloc, mem_realloc, inner[MEM].free};
    Allocator obj = {inner[OBJ].ctx, obj_malloc, obj_calloc, obj_realloc, inner[OBJ].free};
    set(RAW, &raw);
    set(MEM, &mem);
    set(OBJ, &obj);
    return 0;
}

/* Usage ------------------------------------------------------------------------------------------------------------ */

enum { /* what the process had used; the parent reads it as `Baseline` */
    USED_USER_US,
    USED_SYSTEM_US,
    USED_CHILDREN_US,
    USED_MINOR,
    USED_MAJOR,
    USED_VOLUNTARY,
    USED_INVOLUNTARY,
    USED_CHILDREN_PEAK_KIB,
    USED_BYTES,
    USED_BLOCKS,
    USED
};
enum { /* what an attempt used; -1 is what cannot be known */
    COST_WALL_US,
    COST_USER_US,
    COST_SYSTEM_US,
    COST_CHILDREN_US,
    COST_PEAK_BYTES,
    COST_END_BYTES,
    COST_MINOR,
    COST_MAJOR,
    COST_VOLUNTARY,
    COST_INVOLUNTARY,
    COST_BYTES,
    COST_BLOCKS
};

static int64_t nobodys_baseline[USED];
static struct {
    int clear_refs, statm; /* descriptors; -1: none */
    long page_bytes;
    uint64_t started_ns;
    int64_t *baseline; /* where the parent reads it */
    int64_t *cost;
    int64_t before[USED];
    int peak_is_reset;
} usage;

static int64_t us_of(struct timeval time) { return time.tv_sec * US_PER_S + time.tv_usec; }

static long read_used(int64_t *used) /* answers the peak in KiB */
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    used[USED_USER_US] = us_of(own.ru_utime);
    used[USED_SYSTEM_US] = us_of(own.ru_stime);
    used[USED_CHILDREN_US] = us_of(children.ru_utime) + us_of(children.ru_stime);
    used[USED_MINOR] = own.ru_minflt;
    used[USED_MAJOR] = own.ru_majflt;
    used[USED_VOLUNTARY] = own.ru_nvcsw;
    used[USED_INVOLUNTARY] = own.ru_nivcsw;
    used[USED_CHILDREN_PEAK_KIB] = children.ru_maxrss;
    used[USED_BYTES] = (int64_t)(counters[BYTES] + counters[RAW_BYTES]);
    used[USED_BLOCKS] = (int64_t)(counters[BLOCKS] + counters[RAW_BLOCKS]);
    return own.ru_maxrss;
}

static int64_t resident_bytes(void)
{
    char text[64];
    ssize_t length = pread(usage.statm, text, sizeof text - 1, 0);
    if (length <= 0)
        return -1;
    text[length] = 0;
    char *second, *end;
    strtoul(text, &second, 10);
    unsigned long pages = strtoul(second, &end, 10);
    return end == second ? -1 : (int64_t)pages * usage.page_bytes;
}

static void leave_for_nobody(void) { usage.baseline = nobodys_baseline; }

/* From now on leave what was used before each attempt in `baseline` and what it cost in `cost`. The descriptors are of
   this process's own clear_refs and statm. Call it once. What a fork of this process had used is left for nobody.
   Answers 0 or an errno. */
int rw_usage_install(int clear_refs, int statm, int64_t *baseline, int64_t *cost)
{
    int refused = pthread_atfork(NULL, NULL, leave_for_nobody);
    if (refused)
        return refused;
    usage.clear_refs = clear_refs;
    usage.statm = statm;
    usage.page_bytes = sysconf(_SC_PAGESIZE);
    usage.baseline = baseline;
    usage.cost = cost;
    return 0;
}

/* An attempt begins. Under the interpreter's lock, like the next. */
void rw_usage_start(void)
{
    usage.peak_is_reset = write(usage.clear_refs, "5", 1) == 1;
    read_used(usage.before);
    memcpy(usage.baseline, usage.before, sizeof usage.before);
    usage.started_ns = now_ns(CLOCK_BOOTTIME);
}

/* The attempt has ended. */
void rw_usage_end(void)
{
    int64_t wall_ns = (int64_t)(now_ns(CLOCK_BOOTTIME) - usage.started_ns), used[USED], *cost = usage.cost;
    int64_t peak_bytes = (int64_t)read_used(used) * 1024, resident = resident_bytes();
    for (int each = 0; each < USED; each++) {
        used[each] -= usage.before[each];
        if (used[each] < 0) /* the kernel's sums can step back by one */
            used[each] = 0;
    }
    cost[COST_WALL_US] = wall_ns / 1000;
    cost[COST_USER_US] = used[USED_USER_US];
    cost[COST_SYSTEM_US] = used[USED_SYSTEM_US];
    cost[COST_CHILDREN_US] = used[USED_CHILDREN_US];
    /* The kernel sums both figures loosely, the peak more so: it may read a little lower than what is resident. */
    cost[COST_PEAK_BYTES] = !usage.peak_is_reset ? -1 : peak_bytes > resident ? peak_bytes : resident;
    cost[COST_END_BYTES] = resident;
    cost[COST_MINOR] = used[USED_MINOR];
    cost[COST_MAJOR] = used[USED_MAJOR];
    cost[COST_VOLUNTARY] = used[USED_VOLUNTARY];
    cost[COST_INVOLUNTARY] = used[USED_INVOLUNTARY];
    cost[COST_BYTES] = used[USED_BYTES];
    cost[COST_BLOCKS] = used[USED_BLOCKS];
}
