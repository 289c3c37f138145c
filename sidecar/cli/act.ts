import type { Config } from '../config.ts'
import { systemClock } from '../core/clock.ts'
import { ConfigError, SidecarError } from '../core/errors.ts'
import type { Couch } from '../couch/client.ts'
import {
  actOnAll,
  actOnOne,
  discard,
  retryBy,
  undoDiscard,
  type Action,
  type ActionResult,
} from '../docstate/operator/actions.ts'
import { countsFor, findDocuments } from '../docstate/operator/find.ts'
import type { Status } from '../../ddocs/lib/status.ts'
import { STUCK } from '../../ddocs/lib/stuck.ts'
import { operatorIn, withCouch } from './connect.ts'
import { eachDatabase, sumOf } from './each-database.ts'
import { readFilter, type FilterFlags, type ReadFilter } from './filter-flags.ts'
import { oneLine } from '../core/visible.ts'
import { barOf, grouped } from './show-progress.ts'
import type { Terminal } from './terminal.ts'

export interface ActFlags extends FilterFlags {
  readonly all?: boolean
  readonly dryRun?: boolean
  readonly json?: boolean
  /** For `discard` only. */
  readonly undo?: boolean
}

export interface Target {
  /** A name. Without an id, also a glob. */
  readonly db: string
  readonly id: string | undefined
}

interface Verb {
  readonly name: 'retry' | 'discard'
  /** Throws `ConfigError` if the verb does not apply to the selected documents. */
  readonly actionFor: (filter: ReadFilter) => Action
  /** Statuses that the verb applies to. Default: those in the flags. */
  readonly statuses?: readonly Status[]
  /** Past participle that follows a count. */
  readonly done: string
  /** Sentence for one changed document; `state` is its new state. */
  readonly doneOne: (state: string) => string
  /** Why the verb does not apply to a document. */
  readonly notApplicable: string
}

const NOT_STUCK = 'it has not failed and does not wait'

/** Runs the handler again for one document, or for all that the flags select. */
export const retryDocuments = (terminal: Terminal, config: Config, target: Target, flags: ActFlags): Promise<void> =>
  act(terminal, config, target, flags, {
    ...{ name: 'retry', done: 'retried', notApplicable: NOT_STUCK },
    doneOne: (state) => `is back in state ${state}`,
    actionFor: () => retryBy(operatorIn(config), systemClock.now()),
  })

/** Gives up one document, or all that the flags select; or restores them. */
export const discardDocuments = (terminal: Terminal, config: Config, target: Target, flags: ActFlags): Promise<void> =>
  flags.undo ? undoDiscards(terminal, config, target, flags) : discardAny(terminal, config, target, flags)

function undoDiscards(terminal: Terminal, config: Config, target: Target, flags: ActFlags): Promise<void> {
  if (flags.status !== undefined)
    throw new ConfigError(['discard: --undo: expected no --status: it selects discarded documents'])
  return act(terminal, config, target, flags, {
    ...{ name: 'discard', done: 'restored', statuses: ['discarded'], notApplicable: 'it is not discarded' },
    doneOne: (state) => `is restored, in state ${state}`,
    actionFor: () => undoDiscard({ by: operatorIn(config), now: systemClock.now() }),
  })
}

const discardAny = (terminal: Terminal, config: Config, target: Target, flags: ActFlags): Promise<void> =>
  act(terminal, config, target, flags, {
    ...{ name: 'discard', done: 'discarded', notApplicable: NOT_STUCK },
    doneOne: () => 'is discarded',
    actionFor({ statuses = STUCK, type, state }) {
      if (!statuses.every((status) => STUCK.includes(status)) && (type === undefined || state === undefined)) {
        throw new ConfigError([
          `discard: expected --type and --state with --status ${statuses.join()}: most documents have this status for good`,
        ])
      }
      return discard({ by: operatorIn(config), now: systemClock.now(), among: statuses })
    },
  })

async function act(terminal: Terminal, config: Config, { db, id }: Target, flags: ActFlags, verb: Verb): Promise<void> {
  const read = readFilter(verb.name, flags)
  const filter = { ...read, statuses: read.statuses ?? verb.statuses }
  const action = verb.actionFor(filter)
  const isMany = flags.all === true || filter.isGiven
  if ((id === undefined) !== isMany) {
    throw new ConfigError([`${verb.name}: expected either a document id, or --all or a filter such as --type`])
  }
  if (id !== undefined && flags.dryRun) throw new ConfigError([`${verb.name}: --dry-run: expected no document id`])
  await withCouch(config, async (couch) => {
    if (flags.dryRun) return countSelected(couch)
    if (id === undefined) return actOnMany(couch)
    const result = await actOnOne(couch.db(db), id, action, terminal.signal)
    if (result.kind !== 'done') throw new SidecarError(result.kind, oneLine(inWords(result, verb)))
    terminal.print(flags.json ? JSON.stringify({ database: db, ...result }) : oneLine(inWords(result, verb)))
  })

  /** Counts the documents that the verb would change. */
  async function countSelected(couch: Couch): Promise<void> {
    const { print, signal } = terminal
    let all = 0
    for await (const { name, counted } of eachDatabase(couch, config, db, terminal)) {
      if (!counted) continue
      let count = 0
      const options = { database: couch.db(name), counted, filter, now: systemClock.now(), signal }
      for await (const found of findDocuments(options)) count += found.filter(({ doc }) => action(doc)).length
      count = Math.min(count, filter.limit - all)
      if (count > 0)
        print(flags.json ? JSON.stringify({ database: name, count }) : oneLine(`${name}  ${grouped(count)}`))
      all += count
    }
    if (!flags.json) print(`${grouped(all)} ${all === 1 ? 'document matches' : 'documents match'}; nothing was changed`)
  }

  async function actOnMany(couch: Couch): Promise<void> {
    const { redraw, print, note, signal } = terminal
    const sums = { done: 0, changed: 0, refused: 0 }
    try {
      for await (const { name, counted } of eachDatabase(couch, config, db, terminal)) {
        if (!counted) continue
        const [total, before] = [sumOf(countsFor(counted, filter)), sums.done]
        const limit = filter.limit - sums.done
        const options = { database: couch.db(name), counted, filter, now: systemClock.now(), signal }
        for await (const results of actOnAll({ ...options, action, limit })) {
          for (const result of results) {
            if (result.kind === 'done' || result.kind === 'changed' || result.kind === 'refused') sums[result.kind] += 1
            if (flags.json) print(JSON.stringify({ database: name, ...result }))
            else if (result.kind !== 'done' || sums.done <= SHOWN) print(oneLine(inWords(result, verb)))
          }
          const ofThese = sums.done - before
          redraw?.(`${barOf(ofThese / Math.max(total, ofThese))} ${grouped(sums.done)} ${verb.done}: ${name}`)
        }
        if (sums.done >= filter.limit) break
      }
    } finally {
      redraw?.('')
      if (signal.aborted) note(`interrupted after ${grouped(sums.done)}: run the same command again for the rest`)
    }
    if (!flags.json) print(`${grouped(sums.done)} ${verb.done}`)
    if (sums.refused > 0) throw new SidecarError('refused', `CouchDB refused ${sums.refused}: see above`)
    if (sums.changed > 0) {
      throw new SidecarError('changed', `${sums.changed} changed in the meantime: run the command again`)
    }
  }
}

/** Maximum documents printed; further ones are only counted. */
const SHOWN = 20

function inWords(result: ActionResult, { doneOne, notApplicable }: Verb): string {
  switch (result.kind) {
    case 'done':
      return `${result.id} ${doneOne(result.state)}`
    case 'not-found':
      return `there is no document "${result.id}"`
    case 'nothing-to-do':
      return `${result.id} is in state ${String(result.state)}: ${notApplicable}`
    case 'changed':
      return `${result.id} changed in the meantime and was left as it is`
    case 'refused':
      return `${result.id}: CouchDB refused it: ${result.code}: ${result.reason}`
  }
}
