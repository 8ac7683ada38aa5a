/* The compiled part of an executor: what cannot be done while Python code holds the interpreter.

     fence        a thread keeps the kernel's timer armed at the executor's deadline; when it passes, the kernel kills the
                  process, whatever runs in it, and before another instruction of it runs after a freeze
     allocations  counts what Python's allocators hand out, in memory that the parent reads

   It uses no Python headers, so one build serves every version of Python. Only executors use it, after their fork:
   nothing here is started in the process that forks them. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ABI 2
#define NS_PER_S 1000000000ULL
#define SLOT_BYTES 64
#define FENCE_STACK_BYTES (64 * 1024)
#define NEAREST_POLL_NS 1000000ULL

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

static void *counted_malloc(void *ctx, size_t bytes)
{
    Allocator *allocator = ctx;
    depth++;
    void *block = allocator->malloc(allocator->ctx, bytes);
    depth--;
    if (block)
        count(bytes);
    return block;
}

static void *counted_calloc(void *ctx, size_t number, size_t bytes)
{
    Allocator *allocator = ctx;
    depth++;
    void *block = allocator->calloc(allocator->ctx, number, bytes);
    depth--;
    if (block)
        count(number * bytes);
    return block;
}

static void *counted_realloc(void *ctx, void *block, size_t bytes)
{
    Allocator *allocator = ctx;
    depth++;
    block = allocator->realloc(allocator->ctx, block, bytes);
    depth--;
    if (block)
        count(bytes);
    return block;
}

static void *raw_malloc(void *ctx, size_t bytes)
{
    Allocator *allocator = ctx;
    void *block = allocator->malloc(allocator->ctx, bytes);
    if (block)
        count_raw(bytes);
    return block;
}

static void *raw_calloc(void *ctx, size_t number, size_t bytes)
{
    Allocator *allocator = ctx;
    void *block = allocator->calloc(allocator->ctx, number, bytes);
    if (block)
        count_raw(number * bytes);
    return block;
}

static void *raw_realloc(void *ctx, void *block, size_t bytes)
{
    Allocator *allocator = ctx;
    block = allocator->realloc(allocator->ctx, block, bytes);
    if (block)
        count_raw(bytes);
    return block;
}

static void any_free(void *ctx, void *block)
{
    Allocator *allocator = ctx;
    allocator->free(allocator->ctx, block);
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
    for (int domain = 0; domain < DOMAINS; domain++) {
        get(domain, &inner[domain]);
        Allocator counting = {&inner[domain], counted_malloc, counted_calloc, counted_realloc, any_free};
        if (domain == RAW) {
            counting.malloc = raw_malloc;
            counting.calloc = raw_calloc;
            counting.realloc = raw_realloc;
        }
        set(domain, &counting);
    }
    return 0;
}
