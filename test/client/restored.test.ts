/** A server's files are replaced by an older copy while a client runs: its checkpoints are ahead of the server. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { needs, startPrivateCouch, type PrivateCouch } from '../support/couchdb.ts'
import { findCouchBinary, FIRST_RANGE, LAST_RANGE, only } from '../support/couchdb-binary.ts'
import { eventually } from '../support/eventually.ts'
import { startLink, startReplica } from './replica.ts'

let server: PrivateCouch | undefined
beforeAll(async () => {
  if (findCouchBinary()) server = await startPrivateCouch()
})
afterAll(() => server?.stop())

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)

async function start(isLive: boolean) {
  const replica = await startReplica(server!.url)
  startLink(replica, isLive, 500)
  return replica
}

const kinds = ['of all of it', 'of the first range', 'of the last range'].flatMap((copy, i) =>
  [true, false].map((isLive) => ({
    isLive,
    range: ['', FIRST_RANGE, LAST_RANGE][i]!,
    name: `${copy}, live: ${isLive}`,
  })),
)

test('both sides recover all documents after a restore of all files or one range, live and in rounds', async () => {
  needs('private server')
  const all = await Promise.all(kinds.map(async (kind) => ({ ...kind, ...(await start(kind.isLive)) })))
  const write = async (what: string, count: number) => {
    for (const { here, there } of all) {
      for (const id of ids(`here-${what}-`, count)) await here.put({ _id: id })
      for (const id of ids(`there-${what}-`, count)) await there.put({ _id: id })
    }
  }
  async function bothHave(what: string, count: number): Promise<void> {
    const wanted = [...ids(`here-${what}-`, count), ...ids(`there-${what}-`, count)]
    const missingIn = (had: readonly string[]) => wanted.filter((id) => !had.includes(id))
    for (const { name, here, there } of all) {
      await eventually(async () => {
        const { rows } = await here.allDocs()
        expect(missingIn(rows.map(({ id }) => id)), `here: ${name}`).toEqual([])
        expect(missingIn((await there.withPrefix('')).map(({ _id }) => _id)), `there: ${name}`).toEqual([])
      })
    }
  }
  await write('before', 10)
  await bothHave('before', 10)
  const copy = await server!.copy()
  await write('lost', 40)
  await bothHave('lost', 40)
  await server!.restart(...all.map(({ there, range }) => only(copy, [there.name], range)))
  await write('after', 6)
  await bothHave('after', 6)
  await bothHave('lost', 40)
})
