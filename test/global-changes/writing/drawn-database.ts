/** A database that a test changes at random, and the final check of its events. */
import type { Database } from '../../../sidecar/couch/database.ts'
import type { DatabaseEvent } from '../../../sidecar/global-changes/event-documents.ts'
import { updateFrom } from '../../../sidecar/global-changes/reading/update.ts'
import { createAgain, uniqueName } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'

/** An event document: the number of its writes, and its position among the others. */
interface Row {
  readonly times: number
  readonly place: number
}

export type Rows = ReadonlyMap<string, { readonly [E in DatabaseEvent]?: Row }>

/** The rows of each database. In a database with one shard, rows are in the order of writes. */
export async function readRows(events: Database): Promise<Rows> {
  const rows = new Map<string, { [E in DatabaseEvent]?: Row }>()
  const { results } = await events.changesPage({})
  results.forEach((change, place) => {
    const { event, rev } = updateFrom({ ...change, seq: change.seq! })!
    if (event) rows.set(event.database, { ...rows.get(event.database), [event.event]: { times: parseInt(rev), place } })
  })
  return rows
}

export class DrawnDatabase {
  readonly #db: Database
  readonly #events: Database
  #docs = 0
  /** `instance_start_time` of the current life, and of the one before. */
  #life: string | undefined
  #lifeBefore: string | undefined
  #wasDeleted = false
  /** The numbers of `deleted` and `updated` writes before the last change that requires another one. */
  #deletedAfter: number | undefined
  #updatedAfter: number | undefined

  constructor(db: Database, events: Database) {
    this.#db = db
    this.#events = events
  }

  get name(): string {
    return this.#db.name
  }

  get isThere(): boolean {
    return this.#life !== undefined
  }

  async create(): Promise<void> {
    this.#life = (await createAgain(this.#db)).instance_start_time
    // Two lives within one second have the same start time: no sweep can detect that the first lacks its events.
    if (this.#life === this.#lifeBefore) this.#deletedAfter = undefined
  }

  async write(): Promise<void> {
    const { updated } = await this.#rows()
    await eventually(() => this.#db.put({ _id: `doc-${++this.#docs}-${uniqueName('try')}` }))
    if (this.#life !== this.#lifeBefore) this.#updatedAfter = updated?.times ?? 0
  }

  async delete(): Promise<void> {
    const { created, updated, deleted } = await this.#rows()
    const isReportedToExist = Math.max(created?.place ?? -1, updated?.place ?? -1) > (deleted?.place ?? -1)
    if (isReportedToExist) this.#deletedAfter = deleted?.times ?? 0
    await eventually(() => this.#db.drop())
    this.#wasDeleted = true
    this.#updatedAfter = undefined
    ;[this.#lifeBefore, this.#life] = [this.#life, undefined]
  }

  /** The errors in these rows, after all events are written. */
  faults(rows: Rows): string[] {
    const { created, updated, deleted } = rows.get(this.name) ?? {}
    const faults = {
      'exists, without a created event': this.isThere && !created,
      'was changed, without an updated event':
        this.#updatedAfter !== undefined && !(updated && updated.times > this.#updatedAfter),
      'was not deleted, with a deleted event': !this.#wasDeleted && deleted,
      'was deleted, without a deleted event':
        this.#deletedAfter !== undefined && !(deleted && deleted.times > this.#deletedAfter),
      'exists, with a created event before the deleted event':
        this.isThere && created && deleted && created.place < deleted.place,
      'does not exist, with an event later than deleted':
        !this.isThere && Math.max(created?.place ?? -1, updated?.place ?? -1) > (deleted?.place ?? -1),
    }
    return Object.entries(faults).flatMap(([fault, isSo]) => (isSo ? [`${this.name} ${fault}`] : []))
  }

  async #rows() {
    return (await eventually(() => readRows(this.#events))).get(this.name) ?? {}
  }
}
