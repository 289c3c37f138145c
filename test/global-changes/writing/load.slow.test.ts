import { expect, test } from 'vitest'
import { createTestCouch, needs } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { startGlobalChanges, startServerWithFeed } from './rig.ts'

const COUNT = 1000
const AT_ONCE = 8

/** Runs the work for a fixed number of names at a time. */
async function forAll(names: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> {
  const waiting = [...names]
  const worker = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await work(name)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

test('a thousand databases that are created, written and deleted have all their events in the end', async () => {
  needs('private server')
  const { url } = await startServerWithFeed()
  const couch = createTestCouch({ url })
  const { swept, events } = startGlobalChanges({ url })
  await swept()
  const names = Array.from({ length: COUNT }, (_, i) => `load/db${i}`)
  await forAll(names, async (db) => {
    await couch.request({ method: 'PUT', db, query: { q: 1 } })
    await couch.db(db).put({ _id: 'a' })
    if (Number(db.slice(7)) % 2 === 0) await couch.request({ method: 'DELETE', db })
  })
  const wanted = names.flatMap((name, i) => [
    ...[`created:${name}`, `updated:${name}`],
    ...(i % 2 === 0 ? [`deleted:${name}`] : []),
  ])
  await eventually(async () => {
    const there = new Set((await events.getMany(wanted)).map(({ _id }) => _id))
    expect(wanted.filter((id) => !there.has(id))).toEqual([])
  })
})
