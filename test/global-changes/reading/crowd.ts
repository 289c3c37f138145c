import { expect } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import { SEQ_ZERO, type Seq } from '../../../sidecar/couch/documents.ts'
import { NOW } from '../../../sidecar/global-changes/reading/history.ts'
import { eventually } from '../../support/eventually.ts'
import { updatesOf, type EventDatabase } from './event-database.ts'
import type { createFeed } from './rig.ts'

const ROUNDS = 40
/** From this round on, the hub follows the feed. Readers of earlier rounds may open before that. */
const FOLLOWED = 5
const ids = updatesOf(150)

/**
 * Opens a reader in each round, from many sequences, while rows are written. Afterwards each reader must have the last
 * revision of every document written after its sequence. Returns the number of duplicate rows.
 */
export async function readWhileWriting(db: EventDatabase, { feed, run, collect }: ReturnType<typeof createFeed>) {
  await eventually(() => db.report(...ids))
  run()
  const written = new Map<string, number>()
  const seqs: Seq[] = []
  const readers: { from: number; reader: ReturnType<typeof collect> }[] = []
  for (let round = 0; round < ROUNDS; round++) {
    if (round === FOLLOWED) {
      await eventually(async () => {
        await db.report('note')
        expect(feed.counts().rows).toBeGreaterThan(0)
      })
    }
    seqs.push(round === 0 ? SEQ_ZERO : (await db.info()).update_seq)
    const from = round % 3 === 0 ? round : Math.floor((round * (round % 7)) / 7)
    const reader = collect({ since: from === round ? NOW : seqs[from]! })
    if (round % 3 === 0) await eventually(() => expect(reader.reading.isBehind).toBe(false)) // "now" is resolved
    readers.push({ from, reader })
    const some = ids.slice((round * 7) % 120).slice(0, 30)
    await db.report(...some)
    for (const id of some) written.set(id, round)
  }
  const revs = await revsOf(db)
  for (const { from, reader } of readers) {
    await eventually(() => {
      const seen = new Map(reader.updates.map(({ id, rev }) => [id, rev]))
      for (const [id, round] of written)
        if (round >= from) expect(seen.get(id), `${id} since ${from}`).toBe(revs.get(id))
    })
  }
  const twice = readers.map(({ reader: { updates } }) => {
    return updates.length - new Set(updates.map(({ id, rev }) => `${id} ${rev}`)).size
  })
  return twice.reduce((sum, count) => sum + count, 0)
}

const revsOf = async (db: Database) => new Map((await db.getMany(ids)).map(({ _id, _rev }) => [_id, _rev]))
