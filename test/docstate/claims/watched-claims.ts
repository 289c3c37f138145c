/** What several workers claim at the nodes of a cluster, and what these show in the end. */
import { expect } from 'vitest'
import type { Couch } from '../../../sidecar/couch/client.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { eventually } from '../../support/eventually.ts'
import { docstateIn } from '../rig.ts'
import { answerOf } from '../../support/answers.ts'

export interface WatchedClaims {
  /** Notes which worker claims what there. */
  readonly watched: (db: Database, worker: string) => Database
  /** How many documents more than one worker tried to claim. */
  readonly contested: () => number
  /** How many claims were stored below the quorum. */
  readonly accepted: () => number
}

export function watchClaims(): WatchedClaims {
  const claims = new Map<string, Set<string>>()
  let accepted = 0
  return {
    watched(db, worker) {
      const bulk: Database['bulk'] = async (docs, options) => {
        const rows = await db.bulk(docs, options)
        for (const doc of docs.map((text) => JSON.parse(text) as StoredDoc)) {
          if (!docstateIn(doc)?.claim) continue
          const name = `${db.name}/${doc._id}`
          claims.set(name, (claims.get(name) ?? new Set()).add(worker))
          if (rows.some((row) => row.id === doc._id && row.accepted)) accepted += 1
        }
        return rows
      }
      return { ...db, bulk }
    },
    contested: () => [...claims.values()].filter((workers) => workers.size > 1).length,
    accepted: () => accepted,
  }
}

/** Resolves when every node shows all documents so (their ids begin with `o`), and none of them in conflict. */
export async function untilSettled(admins: readonly Couch[], db: string, count: number, expected: object) {
  for (const admin of admins) {
    const query = { include_docs: true, conflicts: true, startkey: 'o', endkey: 'p' }
    const list = () => answerOf<{ rows: { doc: StoredDoc }[] }>(admin, { db, path: '_all_docs', query })
    await eventually(
      async () => {
        const docs = (await list()).rows.map(({ doc }) => doc)
        expect(docs).toHaveLength(count)
        for (const doc of docs) expect(doc).toMatchObject(expected)
        // The list is that of one copy of each; what several together know of a document is asked for one by one.
        const one = (id: string) => admin.db(db).get(id, { conflicts: true })
        const whole = await Promise.all(docs.map(({ _id }) => one(_id)))
        for (const doc of [...docs, ...whole]) expect(doc).not.toHaveProperty('_conflicts')
      },
      { within: 90_000 }, // a claim that nobody takes back is over after a lease
    )
  }
}
