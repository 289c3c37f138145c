/** Counts the claims of several workers in a cluster, and checks the final documents at each node. */
import { expect } from 'vitest'
import type { Couch } from '../../../sidecar/couch/client.ts'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { StoredDoc } from '../../../sidecar/couch/documents.ts'
import { eventually } from '../../support/eventually.ts'
import { docstateIn } from '../rig.ts'
import { answerOf } from '../../support/answers.ts'

export interface WatchedClaims {
  /** Wraps a database and records the claims of this worker. */
  readonly watched: (db: Database, worker: string) => Database
  /** The number of documents that more than one worker tried to claim. */
  readonly contested: () => number
  /** The number of claims stored below the quorum. */
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

/**
 * Whether a claim of the worker whose node was killed expired before its outcome was known, which parks the document. A
 * busy machine may need longer than a lease to restart a node. `killed`: index of the worker, if any.
 */
export const isLeftBy = (killed: number | undefined) => (doc: StoredDoc) => {
  const parked = docstateIn(doc)?.parked as { reason: string } | undefined
  return killed !== undefined && !!parked?.reason.startsWith(`the worker worker-${killed} did not renew its claim`)
}

/** Waits until each document (`o0`, `o1`, …) is handled, or `isLeft` accepts it. */
export async function untilHandled(
  database: Database,
  count: number,
  isHandled: (id: string) => boolean,
  isLeft: (doc: StoredDoc) => boolean,
): Promise<void> {
  await eventually(async () => {
    const open = Array.from({ length: count }, (_, i) => `o${i}`).filter((id) => !isHandled(id))
    const docs = open.length > 0 ? await database.getMany(open) : []
    expect(docs.filter((doc) => !isLeft(doc))).toEqual([])
    expect(docs).toHaveLength(open.length)
  })
}

/**
 * Waits until every node shows all documents (ids from `o`) without conflicts. Each has these fields, except documents
 * that `isLeft` accepts.
 */
export async function untilSettled(
  admins: readonly Couch[],
  db: string,
  count: number,
  expected: object,
  isLeft: (doc: StoredDoc) => boolean = () => false,
) {
  for (const admin of admins) {
    const query = { include_docs: true, conflicts: true, startkey: 'o', endkey: 'p' }
    const list = () => answerOf<{ rows: { doc: StoredDoc }[] }>(admin, { db, path: '_all_docs', query })
    await eventually(
      async () => {
        const docs = (await list()).rows.map(({ doc }) => doc)
        expect(docs).toHaveLength(count)
        for (const doc of docs) if (!isLeft(doc)) expect(doc).toMatchObject(expected)
        // The list reads one copy of each document, so each document is also read from several copies.
        const one = (id: string) => admin.db(db).get(id, { conflicts: true })
        const whole = await Promise.all(docs.map(({ _id }) => one(_id)))
        for (const doc of [...docs, ...whole]) expect(doc).not.toHaveProperty('_conflicts')
      },
      { within: 90_000 }, // a claim that no worker releases expires after a lease
    )
  }
}
