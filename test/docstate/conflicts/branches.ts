/** Creates conflicting branches for the tests of conflicts. */
import { expect } from 'vitest'
import type { Database } from '../../../sidecar/couch/database.ts'
import type { Doc, StoredDoc } from '../../../sidecar/couch/documents.ts'
import type { Control } from '../../../sidecar/docstate/control.ts'
import { createTestCouch } from '../../support/couchdb.ts'
import { eventually } from '../../support/eventually.ts'
import { answerOf } from '../../support/answers.ts'

/** Adds `length` revisions of a device after the first one, as a replicator does. The last one has this body. */
export async function replicate(db: Database, first: string, length: number, doc: Doc, hash = 'd'): Promise<string> {
  const [number, root] = [parseInt(first), first.slice(first.indexOf('-') + 1)]
  const own = Array.from({ length }, (_, i) => `${hash.repeat(31)}${(length - i).toString(16)}`)
  const start = number + length
  const sent = { ...doc, _rev: `${start}-${own[0]!}`, _revisions: { start, ids: [...own, root] } }
  const body = { new_edits: false, docs: [sent] }
  const rows = await answerOf<unknown[]>(createTestCouch(), { method: 'POST', db: db.name, path: '_bulk_docs', body })
  expect(rows).toEqual([])
  return sent._rev
}

export const invoice = (runs: string[]) => (control: Control) =>
  control.unsafe('order', 'paid', async (doc) => {
    runs.push(doc._id)
    return { ...doc, state: 'invoiced', number: 42 }
  })

export const read = (db: Database): Promise<StoredDoc> => db.get('o', { conflicts: true })

export const expectSettled = (db: Database, fields: object) =>
  eventually(async () => {
    const doc = await read(db)
    expect(doc._conflicts).toBeUndefined()
    expect(doc).toMatchObject(fields)
  })

export const paid = { _id: 'o', type: 'order', state: 'paid', name: 'Ann' }
