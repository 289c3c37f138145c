import type { Status } from '../../ddocs/lib/status.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../core/clock.ts'
import { shellWord } from '../core/shell-word.ts'
import type { Couch } from '../couch/client.ts'
import { hasCapability } from './capabilities.ts'
import { patternOf } from './patterns.ts'
import { docstateOf, isClaim } from '../docstate/classify.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'
import { countsFor, findDocuments, type Found } from '../docstate/operator/find.ts'
import { STUCK } from '../docstate/operator/standing.ts'
import type { StateCount } from '../docstate/operator/status.ts'
import type { Listed } from '../workers/list.ts'

/** Documents that do not go on, for one reason. */
export interface StuckGroup {
  /** A name, or the glob that stands for it in the settings. */
  readonly databases: string
  readonly type: string
  /** In which the handler failed, or is to run. */
  readonly state: string
  readonly status: Status
  readonly count: number
  /** The oldest; ISO 8601, undefined where nothing tells. */
  readonly since: string | undefined
  /** Of the failure. */
  readonly code: string | undefined
  readonly why: string
  /** What brings them on. */
  readonly next: string
  readonly example: { readonly database: string; readonly id: string } | undefined
}

/** What is in a database. */
export interface CountedDatabase {
  readonly name: string
  /** Undefined where its design document is not deployed. */
  readonly counts: readonly StateCount[] | undefined
}

export interface StuckOptions {
  readonly couch: Couch
  /** Those that are looked through. */
  readonly databases: AsyncIterable<CountedDatabase> | Iterable<CountedDatabase>
  /** Names and globs of the settings, by which they are told. */
  readonly patterns: readonly string[]
  readonly workers: readonly Listed[]
  /** By `type/state`. */
  readonly paused: ReadonlySet<string>
  readonly signal: AbortSignal
}

/** So many of one kind are read in a database: of more, the reasons of the oldest stand for all. */
const READ = 1000
/** A claim that has not been renewed for so many leases has no worker. */
const LEASES = 3
const LOOKED_AT: readonly Status[] = [...STUCK, 'claimed', 'ready', 'timeout']

/** All that does not go on by itself, or only later: why, since when, and what brings it on. Throws `CouchError`. */
export async function findStuck(options: StuckOptions): Promise<StuckGroup[]> {
  const { couch, patterns, signal } = options
  const groups = new Map<string, StuckGroup>()
  const add = (group: StuckGroup) => {
    const { databases, type, state, status, code, why } = group
    const key = JSON.stringify([databases, type, state, status, code ?? why])
    const before = groups.get(key)
    const since = [before?.since, group.since].filter((one) => one !== undefined).sort()[0]
    groups.set(key, before ? { ...before, count: before.count + group.count, since } : group)
  }
  for await (const { name, counts = [] } of options.databases) {
    const databases = patternOf(name, patterns)
    let machines: Machines | undefined
    const machinesHere = async () => (machines ??= await machinesIn(couch, name, signal))
    for (const count of countsFor(counts, { statuses: LOOKED_AT })) {
      const found = STUCK.includes(count.status as Status) || count.status === 'claimed' ? await read(name, count) : []
      if (STUCK.includes(count.status as Status))
        for (const group of failures(databases, name, count, found)) add(group)
      else if (count.status === 'claimed') for (const group of lost(databases, name, found)) add(group)
      else if (count.count > 0) for (const group of await idle(databases, name, count, machinesHere)) add(group)
    }
  }
  return [...groups.values()].sort((a, b) => ((a.since ?? '~') < (b.since ?? '~') ? -1 : 1))

  async function read(name: string, count: StateCount): Promise<Found[]> {
    const found: Found[] = []
    const filter = { type: count.type, statuses: [count.status as Status] }
    const all = { database: couch.db(name), counts: [count], filter, now: systemClock.now(), signal }
    for await (const page of findDocuments(all)) {
      found.push(...page)
      if (found.length >= READ) break
    }
    return found
  }

  /** What waits for a handler that is paused, or that no running worker has. */
  async function idle(
    databases: string,
    name: string,
    count: StateCount,
    machines: () => Promise<Machines>,
  ): Promise<StuckGroup[]> {
    const { type, state } = count
    const status = count.status as Status
    const group = { databases, type, state, status, count: count.count, since: undefined, code: undefined }
    const example = undefined
    const handler = `${type}/${state}`
    if (options.paused.has(handler)) {
      return [{ ...group, example, why: 'its handler is paused', next: `couchdb-sidecar resume ${shellWord(handler)}` }]
    }
    if (options.workers.some((worker) => hasCapability(worker, name, { type, state }))) return []
    const declared = (await machines())[type]?.[state]
    if (!declared?.mode && !declared?.timeout) return []
    return [{ ...group, example, why: 'no running worker has its handler', next: 'a worker with this handler' }]
  }
}

/** Those that guard a database. */
const machinesIn = async (couch: Couch, name: string, signal: AbortSignal): Promise<Machines> =>
  ((await couch.db(name).find(DDOC_ID, {}, { signal }))?.machines ?? {}) as Machines

function failures(databases: string, database: string, count: StateCount, found: readonly Found[]): StuckGroup[] {
  const isAll = found.length >= count.count
  const groups = new Map<string, StuckGroup>()
  for (const { standing } of found) {
    const { id, type, handledIn: state, status, since, code, reason = '', nextAt } = standing
    const key = isAll ? JSON.stringify([state, code]) : ''
    const before = groups.get(key)
    const own = { databases, type, state, status, since, code, why: reason, example: { database, id } }
    const next = nextOf(status, databases, { type, state, code }, nextAt)
    if (!before) groups.set(key, { ...own, next, count: isAll ? 1 : count.count })
    else
      groups.set(key, { ...before, count: isAll ? before.count + 1 : count.count, since: earlier(before.since, since) })
  }
  return [...groups.values()]
}

function lost(databases: string, database: string, found: readonly Found[]): StuckGroup[] {
  const now = systemClock.now()
  return found.flatMap(({ doc, standing }) => {
    const claim = docstateOf(doc)?.claim
    if (!isClaim(claim) || !(Date.parse(claim.at) + LEASES * claim.lease_ms < now)) return []
    const { id, type, handledIn: state, status, since } = standing
    const why = `the worker ${claim.worker} holds it, and has not renewed its claim`
    const next = 'another worker takes over, if one with this handler runs'
    return [{ databases, type, state, status, since, code: undefined, why, next, count: 1, example: { database, id } }]
  })
}

const earlier = (one: string | undefined, other: string | undefined) =>
  one !== undefined && (other === undefined || one < other) ? one : other

interface Meant {
  readonly type: string
  readonly state: string
  readonly code: string | undefined
}

function nextOf(status: Status, databases: string, { type, state, code }: Meant, nextAt: string | undefined): string {
  const flags = { type, state, status, ...(code !== undefined && { code }) }
  const words = Object.entries(flags).map(([flag, value]) => `--${flag} ${shellWord(value)}`)
  const which = [shellWord(databases), ...words].join(' ')
  if (status === 'retry')
    return `tried again from ${nextAt ?? 'now'} on; all of them now: couchdb-sidecar retry ${which}`
  if (status === 'parked') return `a person decides: couchdb-sidecar retry ${which}, or discard`
  return `couchdb-sidecar retry ${which}, or discard`
}
