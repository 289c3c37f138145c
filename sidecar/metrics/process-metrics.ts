import { readdir, readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'
import { counter, defineMetrics, gauge, one } from './metric.ts'

const US = 1_000_000
const NODE = 'Node'
const LINUX = 'Linux'

/**
 * By the names that other programs on Node give them. prom-client's own keep a timer and an observer of the garbage
 * collector running for them, without an end; these cost nothing between two looks.
 */
export const processMetrics = defineMetrics({
  title: 'The process',
  prefix: '',
  metrics: {
    process_start_time_seconds: gauge('seconds', 'When the process began, in seconds since 1970.', NODE),
    process_cpu_user_seconds_total: counter('seconds', 'CPU time spent in the program.', NODE),
    process_cpu_system_seconds_total: counter(
      'seconds',
      'CPU time that the operating system spent for the program.',
      NODE,
    ),
    process_cpu_seconds_total: counter('seconds', 'CPU time spent in all.', NODE),
    process_resident_memory_bytes: gauge('bytes', 'Memory that the process holds, of all kinds.', NODE),
    process_open_fds: gauge('files', 'Open files and connections.', LINUX),
    process_max_fds: gauge('files', 'Files and connections that may be open at most.', LINUX),
    nodejs_heap_size_total_bytes: gauge('bytes', 'Size of the JavaScript heap.', NODE),
    nodejs_heap_size_used_bytes: gauge('bytes', 'Memory in use in the JavaScript heap.', NODE),
    nodejs_external_memory_bytes: gauge(
      'bytes',
      'Memory that objects hold outside of the JavaScript heap, such as buffers.',
      NODE,
    ),
    nodejs_eventloop_lag_seconds: gauge('seconds', 'How long one turn of the event loop took just now.', NODE),
    nodejs_eventloop_active_seconds_total: counter(
      'seconds',
      'Time in which the event loop did not wait; its rate is how busy the process is, up to 1.',
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
    ({ length }) => length - 1, // the folder itself
    () => undefined,
  )

/** Undefined where there is no limit, too. */
async function mostFiles(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const [, most] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  return most === undefined ? undefined : Number(most)
}

export const buildMetrics = defineMetrics({
  title: 'The sidecar',
  metrics: {
    build_info: gauge('none', 'Always 1; the labels say what runs.', 'cli/start.ts', {
      version: 'of the sidecar',
      node: 'of Node',
    }),
  },
  read: (version: string) => ({ build_info: [[1, { version, node: process.versions.node }] as const] }),
})
