import type { Status } from '../../ddocs/lib/status.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import type { Machines } from '../../ddocs/machine.ts'
import { systemClock } from '../core/clock.ts'
import { shellWord } from '../core/shell-word.ts'
import type { Couch } from '../couch/client.ts'
import { isOfOneDatabase, type CouchError } from '../couch/couch-errors.ts'
import { hasCapability } from './capabilities.ts'
import { patternOf } from './patterns.ts'
import { docstateOf, isClaim } from '../docstate/classify.ts'
import { DDOC_ID } from '../docstate/finding/pages.ts'
import { countsFor, findDocuments, type Filter, type Found } from '../docstate/operator/find.ts'
import type { Counts, StateCount, StuckCount } from '../docstate/operator/count-documents.ts'
import type { Listed } from '../workers/list-workers.ts'

/** Documents that are stuck for one reason. */
export interface StuckGroup {
  /** Name of the database, or the glob of the settings that it matches. */
  readonly databases: string
  readonly type: string
  /** State in which the handler failed, or is to run. */
  readonly state: string
  readonly status: Status
  readonly count: number
  /** Since when the oldest document is stuck, ISO 8601; undefined if unknown. */
  readonly since: string | undefined
  /** Error code of the failure; undefined without one. */
  readonly code: string | undefined
  readonly why: string
  /** Remedy, such as a command to run. */
  readonly next: string
  readonly example: { readonly database: string; readonly id: string } | undefined
}

/** A database with the counts of its documents. */
export interface CountedDatabase {
  readonly name: string
  /** Undefined if the design document is not deployed. */
  readonly counted: Counts | undefined
}

export interface StuckOptions {
  readonly couch: Couch
  /** Databases to search. */
  readonly databases: AsyncIterable<CountedDatabase> | Iterable<CountedDatabase>
  /** Names and globs of the settings, by which results are grouped. */
  readonly patterns: readonly string[]
  readonly workers: readonly Listed[]
  /** Paused handlers, by `type/state`. */
  readonly paused: ReadonlySet<string>
  readonly signal: AbortSignal
  /** Called for a database that cannot be read. Default: throw the error. */
  readonly onUnread?: (name: string, error: CouchError) => void
}

/** Maximum claims read per database, oldest first. */
const READ = 1000
/** A claim without renewal for this many leases has no worker. A lease lasts at least a second. */
const [LEASES, LEAST_LEASE_MS] = [3, 1000]
const CLAIMED: Filter = { statuses: ['claimed'], olderThanMs: LEASES * LEAST_LEASE_MS }
/** Documents read for one example: the oldest may have continued since the count. */
const EXAMPLES = 10
const filterOf = ({ type, state, status, code }: StuckCount): Filter => ({ type, state, statuses: [status], code })

/** Finds documents that do not continue by themselves, or only later, with reason and remedy. Throws `CouchError`. */
export async function findStuck(options: StuckOptions): Promise<StuckGroup[]> {
  const { couch, patterns, signal } = options
  const groups = new Map<string, StuckGroup>()
  const keyOf = ({ databases, type, state, status, code, why }: StuckGroup) =>
    JSON.stringify([databases, type, state, status, STUCK.includes(status) ? code : why])
  const add = (group: StuckGroup) => {
    const before = groups.get(keyOf(group))
    const since = earlier(before?.since, group.since)
    groups.set(keyOf(group), before ? { ...before, count: before.count + group.count, since } : group)
  }
  for await (const { name, counted } of options.databases) {
    if (!counted) continue
    try {
      await addThoseOf(name, counted)
    } catch (thrown) {
      if (!options.onUnread || !isOfOneDatabase(thrown)) throw thrown
      options.onUnread(name, thrown)
    }
  }
  return [...groups.values()].sort((a, b) => ((a.since ?? '~') < (b.since ?? '~') ? -1 : 1))

  async function addThoseOf(name: string, counted: Counts): Promise<void> {
    const databases = patternOf(name, patterns)
    let machines: Machines | undefined
    const machinesHere = async () => (machines ??= await machinesIn(couch, name, signal))
    for (const count of counted.stuck) {
      const group: StuckGroup = { ...count, databases, why: '', next: '', example: undefined }
      if (groups.has(keyOf(group))) add(group)
      else {
        const oldest = (await read(name, { counts: [], stuck: [count] }, filterOf(count), EXAMPLES)).at(0)
        if (oldest) add(failed(group, name, oldest)) // otherwise all have continued since the count
      }
    }
    for (const group of lost(databases, name, await read(name, counted, CLAIMED, READ))) add(group)
    for (const count of countsFor(counted, { statuses: ['ready', 'timeout'] }))
      for (const group of await idle(databases, name, count, machinesHere)) add(group)
  }

  /** The oldest documents that match the filter, at most a page. */
  async function read(name: string, counted: Counts, filter: Filter, page: number): Promise<Found[]> {
    const all = { database: couch.db(name), counted, filter, now: systemClock.now(), page, signal }
    for await (const found of findDocuments(all)) if (found.length > 0) return found
    return []
  }

  /** Documents that wait for a handler that is paused, or that no running worker has. */
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
      return [{ ...group, example, why: 'the handler is paused', next: `couchdb-sidecar resume ${shellWord(handler)}` }]
    }
    if (options.workers.some((worker) => hasCapability(worker, name, { type, state }))) return []
    const declared = (await machines())[type]?.[state]
    if (!declared?.mode && !declared?.timeout) return []
    return [{ ...group, example, why: 'no running worker has this handler', next: 'start a worker with this handler' }]
  }
}

/** The machines that guard a database. */
const machinesIn = async (couch: Couch, name: string, signal: AbortSignal): Promise<Machines> =>
  ((await couch.db(name).find(DDOC_ID, {}, { signal }))?.machines ?? {}) as Machines

function failed(group: StuckGroup, database: string, { standing }: Found): StuckGroup {
  const { id, reason = '', nextAt } = standing
  return { ...group, why: reason, next: nextOf(group, nextAt), example: { database, id } }
}

/** Documents with a claim of a lost worker. */
function lost(databases: string, database: string, found: readonly Found[]): StuckGroup[] {
  const now = systemClock.now()
  return found.flatMap(({ doc, standing }) => {
    const claim = docstateOf(doc)?.claim
    if (!isClaim(claim) || !(Date.parse(claim.at) + LEASES * claim.lease_ms < now)) return []
    const { id, type, handledIn: state, status, since } = standing
    const why = `the worker ${claim.worker} no longer renews its claim`
    const next = 'another worker with this handler takes over; start one if none is running'
    return [{ databases, type, state, status, since, code: undefined, why, next, count: 1, example: { database, id } }]
  })
}

const earlier = (one: string | undefined, other: string | undefined) =>
  one !== undefined && (other === undefined || one < other) ? one : other

function nextOf({ databases, type, state, status, code }: StuckGroup, nextAt: string | undefined): string {
  const flags = { type, state, status, ...(code !== undefined && { code }) }
  const words = Object.entries(flags).map(([flag, value]) => `--${flag} ${shellWord(value)}`)
  const which = [shellWord(databases), ...words].join(' ')
  if (status === 'retry')
    return `attempts continue from ${nextAt ?? 'now'} on; to retry all now: couchdb-sidecar retry ${which}`
  if (status === 'parked') return `check whether the effect happened, then: couchdb-sidecar retry ${which}, or discard`
  return `couchdb-sidecar retry ${which}, or discard`
}
