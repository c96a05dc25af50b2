/* Threads of devices, for programs that take longer than handing them over.
 *
 * Each runs its programs in the order in which they came. A program waits for its arguments; they are results of
 * programs that were handed over before, so that no circle of waiting can arise.
 */

#include "plugin.h"

#include <stdlib.h>

typedef struct Job {
  struct Job *next;
  Work *work;
  void *task;
} Job;

struct Worker {
  pthread_t thread;
  pthread_cond_t added;
  Job *first, **last;
  bool is_idle;
  size_t begun; /* how many jobs */
  Worker *next; /* of all workers */
};

static Worker *workers;
static bool stopping;

bool workers_are_stopped(void) {
  pthread_mutex_lock(&plugin_lock);
  bool stopped = stopping;
  pthread_mutex_unlock(&plugin_lock);
  return stopped;
}

/* The next job; NULL when there will be no more. */
static Job *next_job(Worker *worker) {
  pthread_mutex_lock(&plugin_lock);
  while (worker->first == NULL && !stopping) {
    worker->is_idle = true;
    pthread_cond_wait(&worker->added, &plugin_lock);
  }
  Job *job = worker->first;
  if (job != NULL) {
    worker->first = job->next;
    if (worker->first == NULL) worker->last = &worker->first;
  }
  pthread_mutex_unlock(&plugin_lock);
  return job;
}

static void begun(Worker *worker) {
  pthread_mutex_lock(&plugin_lock);
  worker->is_idle = false;
  worker->begun++;
  pthread_cond_broadcast(&plugin_changed);
  pthread_mutex_unlock(&plugin_lock);
}

static void *serve(void *user) {
  Worker *worker = user;
  Job *job;
  while ((job = next_job(worker)) != NULL) {
    PyGILState_STATE state = PyGILState_Ensure();
    begun(worker);
    job->work(job->task);
    PyGILState_Release(state);
    free(job);
  }
  return NULL;
}

static Worker *worker_of(Device *device) {
  if (device->worker != NULL) return device->worker;
  Worker *worker = calloc(1, sizeof *worker);
  if (worker == NULL) abort();
  pthread_cond_init(&worker->added, NULL);
  worker->last = &worker->first;
  worker->is_idle = true;
  worker->next = workers;
  if (pthread_create(&worker->thread, NULL, serve, worker) != 0) {
    free(worker);
    return NULL;
  }
  return device->worker = workers = worker;
}

/* Python switches threads every 5 ms only, so the caller steps aside until an idle worker has begun: it gives Python's
 * lock back when its program runs. */
static void step_aside(Worker *worker, size_t begun) {
  PyThreadState *paused = python_pause();
  pthread_mutex_lock(&plugin_lock);
  while (worker->begun == begun) pthread_cond_wait(&plugin_changed, &plugin_lock);
  pthread_mutex_unlock(&plugin_lock);
  python_resume(paused);
}

void worker_add(Device *device, Work *work, void *task) {
  Job *job = malloc(sizeof *job);
  if (job == NULL) abort();
  *job = (Job){.work = work, .task = task};
  pthread_mutex_lock(&plugin_lock);
  Worker *worker = stopping ? NULL : worker_of(device);
  bool is_idle = worker != NULL && worker->is_idle && worker->first == NULL;
  size_t begun_before = worker != NULL ? worker->begun : 0;
  if (worker != NULL) {
    *worker->last = job;
    worker->last = &job->next;
    pthread_cond_signal(&worker->added);
  }
  pthread_mutex_unlock(&plugin_lock);
  if (worker == NULL) {
    free(job);
    work(task);
  } else if (is_idle) {
    step_aside(worker, begun_before);
  }
}

void workers_stop(void) {
  pthread_mutex_lock(&plugin_lock);
  stopping = true;
  Worker *left = workers;
  workers = NULL;
  for (Worker *worker = left; worker != NULL; worker = worker->next) pthread_cond_signal(&worker->added);
  pthread_mutex_unlock(&plugin_lock);
  PyThreadState *paused = python_pause();
  for (Worker *worker = left; worker != NULL; worker = worker->next) pthread_join(worker->thread, NULL);
  python_resume(paused);
}
