import { readdir, readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { counter, defineMetrics, gauge, one } from './metric.ts'

const US = 1_000_000
const NODE = 'Node'
const LINUX = 'Linux'

/**
 * Metrics of the process, with the names usual in Node programs. prom-client's own metrics keep a timer and an observer
 * of the garbage collector running without an end. These metrics cost nothing between two scrapes.
 */
export const processMetrics = defineMetrics({
  title: 'The process',
  prefix: '',
  metrics: {
    process_start_time_seconds: gauge('seconds', 'Start time of the process: seconds since 1970-01-01 UTC.', NODE),
    process_cpu_user_seconds_total: counter('seconds', 'CPU time of the program.', NODE),
    process_cpu_system_seconds_total: counter(
      'seconds',
      'CPU time of the operating system on behalf of the program.',
      NODE,
    ),
    process_cpu_seconds_total: counter(
      'seconds',
      'CPU time of the program and of the operating system on its behalf.',
      NODE,
    ),
    process_resident_memory_bytes: gauge('bytes', 'Resident memory of the process.', NODE),
    process_open_fds: gauge('files', 'Open file descriptors, including connections.', LINUX),
    process_max_fds: gauge('files', 'Maximum number of open file descriptors. No value without a limit.', LINUX),
    nodejs_heap_size_total_bytes: gauge('bytes', 'Size of the JavaScript heap.', NODE),
    nodejs_heap_size_used_bytes: gauge('bytes', 'Used bytes of the JavaScript heap.', NODE),
    nodejs_external_memory_bytes: gauge(
      'bytes',
      'Memory of objects outside the JavaScript heap, such as buffers.',
      NODE,
    ),
    nodejs_eventloop_lag_seconds: gauge(
      'seconds',
      'Duration of one turn of the event loop, measured by the scrape.',
      NODE,
    ),
    nodejs_eventloop_active_seconds_total: counter(
      'seconds',
      'Time in which the event loop was busy. Its rate is the load of the process, from 0 to 1.',
      NODE,
    ),
  },
  async read() {
    const [lagMs, open, most] = await Promise.all([turn(), openFiles(), mostFiles()])
    const { user, system } = process.cpuUsage()
    const { rss, heapTotal, heapUsed, external } = process.memoryUsage()
    return {
      process_start_time_seconds: one(performance.timeOrigin / 1000),
      process_cpu_user_seconds_total: one(user / US),
      process_cpu_system_seconds_total: one(system / US),
      process_cpu_seconds_total: one((user + system) / US),
      process_resident_memory_bytes: one(rss),
      process_open_fds: one(open),
      process_max_fds: one(most),
      nodejs_heap_size_total_bytes: one(heapTotal),
      nodejs_heap_size_used_bytes: one(heapUsed),
      nodejs_external_memory_bytes: one(external),
      nodejs_eventloop_lag_seconds: one(lagMs / 1000),
      nodejs_eventloop_active_seconds_total: one(performance.eventLoopUtilization().active / 1000),
    }
  },
})

async function turn(): Promise<number> {
  const began = performance.now()
  await new Promise(setImmediate)
  return performance.now() - began
}

const openFiles = (): Promise<number | undefined> =>
  readdir('/proc/self/fd').then(
    ({ length }) => length - 1, // without the descriptor of this folder
    () => undefined,
  )

/** Undefined also if no limit is set. */
async function mostFiles(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, most] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  return most === undefined ? undefined : Number(most)
}

export const buildMetrics = defineMetrics({
  title: 'The sidecar',
  metrics: {
    build_info: gauge('none', 'Always 1. The labels name the versions.', 'cli/start.ts', {
      version: 'version of the sidecar',
      node: 'version of Node',
    }),
  },
  read: (version: string) => ({ build_info: [[1, { version, node: process.versions.node }] as const] }),
})
